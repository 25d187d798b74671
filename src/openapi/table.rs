//! Paths with their handlers, and what the document says of each: both are made of one line.

use std::borrow::Cow;

use actix_web::web::{self};
use actix_web::{FromRequest, Handler, Resource, Responder, Route};

use super::{Described, Operation};
use crate::web::methods::with_methods;
use crate::web::schema::Schemas;

/// The names of an operation that its handler does not say.
type Words = Cow<'static, str>;

/// Paths, while they are added.
pub struct Table<'a> {
    paths: Vec<At>,
    /// None: they are to be served, and nothing is said of them.
    schemas: Option<&'a mut Schemas>,
    tag: Option<&'static str>,
    scope: fn(&str) -> &str,
}

/// A path and its methods; any other method is answered `405` with `Allow`.
pub struct At {
    /// The path.
    pub path: String,
    /// Its methods, and what each is called.
    pub named: Vec<Named>,
    /// What the document says of them; none of a table that is to be served.
    pub operations: Vec<Operation>,
    resource: Resource,
}

/// A method of a path.
pub struct Named {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// What the operation is called in the document.
    pub id: Words,
    /// What it is listed under; none: its module.
    pub tag: Option<&'static str>,
}

macro_rules! methods {
    ($($name:ident $method:literal),+) => {$(
        /// What the method of this name does there: the operation's id, its handler, and a line for people.
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

    /// Of the API, in scopes of which each knows so much of its paths.
    pub fn of_api(schemas: &'a mut Schemas, scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: Some(schemas), tag: None, scope }
    }

    /// The same to be served: what the document says is not worked out, which takes far longer than all else.
    pub fn served(scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: None, tag: None, scope }
    }

    /// Of what is served beside the API, under a tag of its own.
    pub fn beside(schemas: &'a mut Schemas, tag: &'static str, scope: fn(&str) -> &str) -> Self {
        Self { paths: Vec::new(), schemas: Some(schemas), tag: Some(tag), scope }
    }

    /// What follows is listed under this, and open to who is let in by what the handlers take.
    pub fn tagged(&mut self, tag: &'static str) -> &mut Self {
        self.tag = Some(tag);
        self
    }

    /// A path that is there already, to which methods are added.
    pub fn again(&mut self, path: &str) -> &mut Self {
        if let Some(place) = self.paths.iter().position(|at| at.path == path) {
            let at = self.paths.remove(place);
            self.paths.push(at);
        }
        self
    }

    /// The next path; the methods that follow are its own.
    pub fn at(&mut self, path: impl Into<String>) -> &mut Self {
        let path = path.into();
        let resource = web::resource(&path[(self.scope)(&path).len()..]);
        self.paths.push(At { path, resource, named: Vec::new(), operations: Vec::new() });
        self
    }

    /// What is said of the last operation unless there is more to say.
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

    /// All of them.
    pub fn finish(self) -> Vec<At> {
        self.paths
    }
}

impl At {
    /// As the router takes it.
    pub fn into_resource(self) -> Resource {
        let allow = self.named.iter().map(|named| named.method).collect::<Vec<_>>().join(", ");
        with_methods(self.resource, allow)
    }
}
