//! The route table: each line declares a handler and its operation in the document.

use std::borrow::Cow;

use actix_web::web::{self};
use actix_web::{FromRequest, Handler, Resource, Responder, Route};

use super::{Described, Operation};
use crate::web::methods::with_methods;
use crate::web::schema::Schemas;

/// Names of an operation that are not part of its handler's signature.
type Words = Cow<'static, str>;

/// Collects paths.
pub struct Table<'a> {
    paths: Vec<At>,
    /// `None`: the table is for serving, and nothing is documented.
    schemas: Option<&'a mut Schemas>,
    tag: Option<&'static str>,
    scope: fn(&str) -> &str,
}

/// A path with its methods; any other method is answered `405` with `Allow`.
pub struct At {
    /// The path.
    pub path: String,
    /// Its methods, with the ids of their operations.
    pub named: Vec<Named>,
    /// Their documentation; empty in a table for serving.
    pub operations: Vec<Operation>,
    resource: Resource,
}

/// A method of a path.
pub struct Named {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// The id of the operation in the document.
    pub id: Words,
    /// Its tag; `None`: its module.
    pub tag: Option<&'static str>,
}

macro_rules! methods {
    ($($name:ident $method:literal),+) => {$(
        /// Adds a method: the operation's id, its handler and its summary.
        pub fn $name<F, Args>(&mut self, id: impl Into<Words>, handler: F, summary: impl Into<Words>) -> &mut Self
        where
            F: Handler<Args>,
            F::Output: Responder + Described + 'static,
            Args: FromRequest + Described + 'static,
        {
            self.add::<Args, F::Output>($method, web::$name().to(handler), id.into(), summary.into())
        }
    )+};
}

impl<'a> Table<'a> {
    methods! { get "GET", post "POST", put "PUT", delete "DELETE" }

    /// A table that documents the API; `scope` returns the part of a path that its scope covers.
    pub fn of_api(schemas: &'a mut Schemas, scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: Some(schemas), tag: None, scope }
    }

    /// The same table for serving: it skips the documentation, which takes much longer than the rest.
    pub fn served(scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: None, tag: None, scope }
    }

    /// A table that documents paths outside the API, under their own tag.
    pub fn beside(schemas: &'a mut Schemas, tag: &'static str, scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: Some(schemas), tag: Some(tag), scope }
    }

    /// Sets the tag of the following paths, which are open to everyone whom their extractors admit.
    pub fn tagged(&mut self, tag: &'static str) -> &mut Self {
        self.tag = Some(tag);
        self
    }

    /// Returns to an existing path, to add further methods.
    pub fn again(&mut self, path: &str) -> &mut Self {
        if let Some(place) = self.paths.iter().position(|at| at.path == path) {
            let at = self.paths.remove(place);
            self.paths.push(at);
        }
        self
    }

    /// Adds a path; the following methods belong to it.
    pub fn at(&mut self, path: impl Into<String>) -> &mut Self {
        let path = path.into();
        let resource = web::resource(&path[(self.scope)(&path).len()..]);
        self.paths.push(At { path, resource, named: Vec::new(), operations: Vec::new() });
        self
    }

    /// The description of the last operation, unless texts.toml has one.
    pub fn says(&mut self, text: String) -> &mut Self {
        if let Some(operation) = self.paths.last_mut().and_then(|at| at.operations.last_mut()) {
            operation.text = text;
        }
        self
    }

    fn add<Args: Described, Output: Described>(
        &mut self,
        method: &'static str,
        route: Route,
        id: Words,
        summary: Words,
    ) -> &mut Self {
        if let Some(mut at) = self.paths.pop() {
            at.named.push(Named { method, id: id.clone(), tag: self.tag });
            if let Some(schemas) = self.schemas.as_deref_mut() {
                let operation = Operation::of::<Args, Output>(method, &at.path, self.tag, id, summary, schemas);
                at.operations.push(operation);
            }
            at.resource = at.resource.route(route);
            self.paths.push(at);
        }
        self
    }

    /// All paths.
    pub fn finish(self) -> Vec<At> {
        self.paths
    }
}

impl At {
    /// Converts it for the router.
    pub fn into_resource(self) -> Resource {
        let allow = self.named.iter().map(|named| named.method).collect::<Vec<_>>().join(", ");
        with_methods(self.resource, allow)
    }
}
