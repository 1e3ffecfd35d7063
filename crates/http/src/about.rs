//! A route's entry in the API document. Schemas are derived from the types that handlers read and
//! write, so they cannot drift.

use std::fmt;

use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Generates the schema of one type.
#[derive(Clone, Copy)]
pub struct Shape(fn(&mut SchemaGenerator) -> Schema);

impl Shape {
    /// The schema of `T`.
    pub fn of<T: JsonSchema>() -> Self {
        Self(SchemaGenerator::subschema_for::<T>)
    }

    /// Generates the schema. Referenced definitions go into the generator.
    pub fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        (self.0)(generator)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shape")
    }
}

/// A route's inputs and responses.
///
/// ```
/// # use urr_http::{About, StatusCode};
/// let about = About::new("The time on the server").answer::<String>(StatusCode::OK);
/// assert_eq!(about.answers.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct About {
    /// One-line summary.
    pub summary: &'static str,
    /// Path parameters with a schema; others are plain strings.
    pub path: Vec<(&'static str, Shape)>,
    /// The query string, as an object.
    pub query: Option<Shape>,
    /// The JSON body of the request.
    pub body: Option<Shape>,
    /// Whether the body may be left out.
    pub body_is_optional: bool,
    /// Successful responses and the schema of their JSON body.
    pub answers: Vec<(StatusCode, Option<Shape>)>,
    /// The JSON in each event of a server-sent event stream.
    pub events: Option<Shape>,
    /// Error statuses beyond those implied by the policy and by having a body, query or path
    /// parameter.
    pub refusals: Vec<StatusCode>,
    /// Optional cookies: name and description.
    pub cookies: Vec<(&'static str, &'static str)>,
    /// Optional headers: name, description and schema.
    pub headers: Vec<(&'static str, &'static str, Shape)>,
}

impl About {
    /// An entry with only a summary.
    pub fn new(summary: &'static str) -> Self {
        Self { summary, ..Self::default() }
    }

    /// Adds a path parameter.
    pub fn path<T: JsonSchema>(mut self, name: &'static str) -> Self {
        self.path.push((name, Shape::of::<T>()));
        self
    }

    /// The query string.
    pub fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(Shape::of::<T>());
        self
    }

    /// The JSON body of the request.
    pub fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Shape::of::<T>());
        self
    }

    /// The JSON body of the request, which may be left out.
    pub fn optional_body<T: JsonSchema>(self) -> Self {
        Self { body_is_optional: true, ..self.body::<T>() }
    }

    /// Adds a response with a JSON body.
    pub fn answer<T: JsonSchema>(mut self, status: StatusCode) -> Self {
        self.answers.push((status, Some(Shape::of::<T>())));
        self
    }

    /// The response is a stream of server-sent events, each with JSON data.
    pub fn events<T: JsonSchema>(mut self) -> Self {
        self.events = Some(Shape::of::<T>());
        self
    }

    /// Adds error statuses beyond those implied by its policy and its inputs.
    pub fn refuses<const N: usize>(mut self, statuses: [StatusCode; N]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// Adds an optional cookie.
    pub fn cookie(mut self, name: &'static str, holds: &'static str) -> Self {
        self.cookies.push((name, holds));
        self
    }

    /// Adds an optional header.
    pub fn header<T: JsonSchema>(mut self, name: &'static str, holds: &'static str) -> Self {
        self.headers.push((name, holds, Shape::of::<T>()));
        self
    }

    /// Adds a response without a JSON body.
    pub fn bare(mut self, status: StatusCode) -> Self {
        self.answers.push((status, None));
        self
    }
}
