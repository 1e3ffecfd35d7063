//! What the API document says about a route. Shapes come from the types that handlers read and write, so they cannot drift.

use std::fmt;

use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes the schema of one type.
#[derive(Clone, Copy)]
pub struct Shape(fn(&mut SchemaGenerator) -> Schema);

impl Shape {
    /// The shape of a type.
    pub fn of<T: JsonSchema>() -> Self {
        Self(SchemaGenerator::subschema_for::<T>)
    }

    /// Its schema; what it refers to is left with the generator.
    pub fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        (self.0)(generator)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shape")
    }
}

/// What a route takes and answers.
///
/// ```
/// # use urr_http::{About, StatusCode};
/// let about = About::new("The time on the server").answer::<String>(StatusCode::OK);
/// assert_eq!(about.answers.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct About {
    /// One line.
    pub summary: &'static str,
    /// Parameters of the path that are more than any text.
    pub path: Vec<(&'static str, Shape)>,
    /// The query string, as an object.
    pub query: Option<Shape>,
    /// The JSON body of the request.
    pub body: Option<Shape>,
    /// Whether the body may be left out.
    pub body_is_optional: bool,
    /// Answers that are no errors, with the JSON body they have.
    pub answers: Vec<(StatusCode, Option<Shape>)>,
    /// The JSON in each event of an answer that does not end.
    pub events: Option<Shape>,
    /// Refusals beside those that the guards make, and those of anything with such a body, query or path.
    pub refusals: Vec<StatusCode>,
    /// Cookies that may say what the body does not: a name and what it holds.
    pub cookies: Vec<(&'static str, &'static str)>,
    /// Headers that may say what the body does not: a name, what it holds, and its shape.
    pub headers: Vec<(&'static str, &'static str, Shape)>,
}

impl About {
    /// A route in one line.
    pub fn new(summary: &'static str) -> Self {
        Self { summary, ..Self::default() }
    }

    /// A parameter of the path.
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

    /// An answer with a JSON body.
    pub fn answer<T: JsonSchema>(mut self, status: StatusCode) -> Self {
        self.answers.push((status, Some(Shape::of::<T>())));
        self
    }

    /// An answer of server-sent events, each with JSON in it.
    pub fn events<T: JsonSchema>(mut self) -> Self {
        self.events = Some(Shape::of::<T>());
        self
    }

    /// Statuses with which it refuses, beside those that follow from its row in the table and from what it takes.
    pub fn refuses<const N: usize>(mut self, statuses: [StatusCode; N]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// A cookie that it reads.
    pub fn cookie(mut self, name: &'static str, holds: &'static str) -> Self {
        self.cookies.push((name, holds));
        self
    }

    /// A header that it reads and that may be left out.
    pub fn header<T: JsonSchema>(mut self, name: &'static str, holds: &'static str) -> Self {
        self.headers.push((name, holds, Shape::of::<T>()));
        self
    }

    /// An answer without a body, or with one that is no JSON.
    pub fn bare(mut self, status: StatusCode) -> Self {
        self.answers.push((status, None));
        self
    }
}
