//! The route table: each line declares a handler and its operation in the document.

use std::borrow::Cow;

use actix_web::web::{self};
use actix_web::{FromRequest, Handler, Resource, Responder, Route};

use super::{Operation, OperationPart};
use crate::web::response::methods::with_methods;
use crate::web::response::schema::Schemas;

/// The id or the summary of an operation.
type OperationText = Cow<'static, str>;

/// Collects the paths of the route table.
pub struct Table<'a> {
    paths: Vec<PathEntry>,
    /// `None`: the table is for serving, and nothing is documented.
    schemas: Option<&'a mut Schemas>,
    tag: Option<&'static str>,
    /// Returns the prefix of a path that the router's scope already matches.
    scope: fn(&str) -> &str,
}

/// A path with its methods; the response to any other method is `405` with `Allow`.
pub struct PathEntry {
    /// The path.
    pub path: String,
    /// The methods of the path, with the ids of their operations.
    pub methods: Vec<MethodEntry>,
    /// The documentation of the methods; empty in a table for serving.
    pub operations: Vec<Operation>,
    resource: Resource,
}

/// A method of a path.
pub struct MethodEntry {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// The id of the operation in the document.
    pub id: OperationText,
    /// The operation's tag; `None`: its module.
    pub tag: Option<&'static str>,
}

macro_rules! methods {
    ($($name:ident $method:literal),+) => {$(
        /// Adds a method: the operation's id, its handler and its summary.
        pub fn $name<F, Args>(&mut self, id: impl Into<OperationText>, handler: F, summary: impl Into<OperationText>) -> &mut Self
        where
            F: Handler<Args>,
            F::Output: Responder + OperationPart + 'static,
            Args: FromRequest + OperationPart + 'static,
        {
            self.add::<Args, F::Output>($method, web::$name().to(handler), id.into(), summary.into())
        }
    )+};
}

impl<'a> Table<'a> {
    methods! { get "GET", post "POST", put "PUT", delete "DELETE" }

    /// A table that documents the API; `scope` returns the prefix of a path that the router's scope already matches.
    pub fn documenting_api(schemas: &'a mut Schemas, scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: Some(schemas), tag: None, scope }
    }

    /// A table for serving the API: it skips the documentation, which takes much longer than the rest.
    pub fn for_serving(scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: None, tag: None, scope }
    }

    /// A table that documents paths outside the API, under their own tag.
    pub fn outside_api(schemas: &'a mut Schemas, tag: &'static str, scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: Some(schemas), tag: Some(tag), scope }
    }

    /// Sets the tag of the following paths. In the document, the extractors of a handler with a tag determine who may
    /// call it; one without a tag requires a company's token.
    pub fn tagged(&mut self, tag: &'static str) -> &mut Self {
        self.tag = Some(tag);
        self
    }

    /// Returns to a path that was added before, so that the following methods belong to it.
    pub fn reopen(&mut self, path: &str) -> &mut Self {
        if let Some(index) = self.paths.iter().position(|entry| entry.path == path) {
            let entry = self.paths.remove(index);
            self.paths.push(entry);
        }
        self
    }

    /// Adds a path; the following methods belong to it.
    pub fn at(&mut self, path: impl Into<String>) -> &mut Self {
        let path = path.into();
        let resource = web::resource(&path[(self.scope)(&path).len()..]);
        self.paths.push(PathEntry { path, resource, methods: Vec::new(), operations: Vec::new() });
        self
    }

    /// Sets the description of the last operation. In the document, one in texts.toml takes precedence.
    pub fn describe(&mut self, text: String) -> &mut Self {
        if let Some(operation) = self.paths.last_mut().and_then(|entry| entry.operations.last_mut()) {
            operation.text = text;
        }
        self
    }

    fn add<Args: OperationPart, Output: OperationPart>(
        &mut self,
        method: &'static str,
        route: Route,
        id: OperationText,
        summary: OperationText,
    ) -> &mut Self {
        if let Some(mut entry) = self.paths.pop() {
            entry.methods.push(MethodEntry { method, id: id.clone(), tag: self.tag });
            if let Some(schemas) = self.schemas.as_deref_mut() {
                let operation = Operation::of::<Args, Output>(method, &entry.path, self.tag, id, summary, schemas);
                entry.operations.push(operation);
            }
            entry.resource = entry.resource.route(route);
            self.paths.push(entry);
        }
        self
    }

    /// Returns all paths.
    pub fn finish(self) -> Vec<PathEntry> {
        self.paths
    }
}

impl PathEntry {
    /// Converts the path to a resource of the router.
    pub fn into_resource(self) -> Resource {
        let allow = self.methods.iter().map(|entry| entry.method).collect::<Vec<_>>().join(", ");
        with_methods(self.resource, allow)
    }
}
