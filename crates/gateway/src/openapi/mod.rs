//! The API document, built from the route table and the descriptions of the routes.

mod page;

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use urr_http::{About, Access, Line, PROBLEM_JSON, Policy, RoleRoutes, RouteName, Shape};

pub(crate) use self::page::routes;
use crate::table::Route;

/// Introduction of the document.
const DESCRIPTION: &str = "\
    Every path below `/api` works below `/api/v1` as well.\n\n\
    **Who asks.** `POST /api/auth/login` answers an access token. Programs send it as `Authorization: Bearer …`. Browsers keep it in a cookie \
    and need not care; with cookies, a request that changes something must come from a page of this site, which browsers say in `Origin`.\n\n\
    **Refusals.** Each has a `Problem` as its body, and its `code` says which it is. With 429 and 503, `Retry-After` says when to come back. A \
    request that is none of these operations gets 404 or 405, and one whose head is too large 414 or 431.";

/// Pointer to named schemas in the document.
const SCHEMAS: &str = "/components/schemas";

/// Collects operations and the schemas they refer to.
pub(crate) struct Document {
    paths: Map<String, Value>,
    /// Schemas of requests.
    requests: SchemaGenerator,
    /// Schemas of responses.
    answers: SchemaGenerator,
    /// Schemas of query strings and headers, inlined: they become parameters and are never
    /// referenced.
    queries: SchemaGenerator,
}

/// Body of every error. `code` identifies the error; some codes have further members.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; `urr_http::Problem` writes the body")]
#[serde(rename_all = "camelCase")]
struct Problem {
    /// Stable identifier for programs, such as `tickets.seats_taken`.
    code: String,
    /// Message for people.
    error: String,
    /// The same message.
    message: String,
    /// HTTP status.
    status: u16,
    /// Request id, as in our logs.
    request_id: uuid::Uuid,
    /// Seconds after which a retry makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl Document {
    pub(crate) fn new() -> Self {
        let generator = |settings: SchemaSettings| {
            let settings = settings.with(|settings| {
                settings.definitions_path = SCHEMAS.into();
                settings.meta_schema = None;
            });
            settings.into_generator()
        };
        Self {
            paths: Map::new(),
            requests: generator(SchemaSettings::draft2020_12().for_deserialize()),
            answers: generator(SchemaSettings::draft2020_12().for_serialize()),
            queries: generator(
                SchemaSettings::draft2020_12()
                    .for_deserialize()
                    .with(|settings| settings.inline_subschemas = true),
            ),
        }
    }

    /// Adds a route, unless it is a page.
    pub(crate) fn add(&mut self, role: &'static RoleRoutes, name: &RouteName) {
        if name.policy.page {
            return;
        }
        let route = Route::new(role, name);
        let operation = self.operation(&route, &name.about);
        let path = self.paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }

    fn operation(&mut self, route: &Route, about: &About) -> Value {
        let mut operation = json!({
            "operationId": operation_id(route),
            "tags": [route.role.role],
            "summary": about.summary,
            "parameters": self.parameters(route, about),
            "responses": self.responses(route, about),
            "security": security(route.policy.access),
        });
        if let Some(body) = about.body {
            let schema = body.schema(&mut self.requests);
            operation["requestBody"] = json!({
                "required": !about.body_is_optional,
                "content": { "application/json": { "schema": schema } },
            });
        }
        operation
    }

    fn parameters(&mut self, route: &Route, about: &About) -> Vec<Value> {
        let mut parameters = Vec::new();
        for name in parameter_names(route.path) {
            let known = about.path.iter().find(|(known, _)| *known == name);
            let schema = known.map_or_else(
                || schemars::json_schema!({ "type": "string", "minLength": 1 }),
                |(_, shape)| shape.schema(&mut self.requests),
            );
            parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
        if let Some(query) = about.query {
            parameters.extend(self.query(query));
        }
        let cookie = |(name, holds): &(&str, &str)| json!({ "name": name, "in": "cookie", "required": false, "description": holds, "schema": { "type": "string" } });
        parameters.extend(about.cookies.iter().map(cookie));
        for (name, holds, shape) in &about.headers {
            parameters.push(json!({
                "name": name,
                "in": "header",
                "required": false,
                "description": holds,
                "schema": shape.schema(&mut self.queries),
            }));
        }
        parameters
    }

    /// Turns the members of a query type into parameters.
    fn query(&mut self, shape: Shape) -> Vec<Value> {
        let schema = shape.schema(&mut self.queries).to_value();
        let required: Vec<_> = schema["required"].as_array().cloned().unwrap_or_default();
        let members = schema["properties"].as_object().cloned().unwrap_or_default();
        let member = |(name, mut schema): (String, Value)| {
            without_null(&mut schema);
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let required = required.contains(&Value::from(name.as_str()));
            let mut parameter =
                json!({ "name": name, "in": "query", "required": required, "schema": schema });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            parameter
        };
        members.into_iter().map(member).collect()
    }

    fn responses(&mut self, route: &Route, about: &About) -> Value {
        let mut responses = Map::new();
        for (status, shape) in &about.answers {
            let mut response = json!({ "description": status.canonical_reason().unwrap_or("Done") });
            if let Some(shape) = shape {
                let schema = shape.schema(&mut self.answers);
                response["content"] = json!({ "application/json": { "schema": schema } });
            }
            responses.insert(status.as_u16().to_string(), response);
        }
        if let Some(events) = about.events {
            let schema = json!({
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": events.schema(&mut self.answers),
            });
            let response = json!({
                "description": "Server-sent events that do not end; the data of each is JSON",
                "content": { "text/event-stream": { "schema": schema } },
            });
            responses.insert(StatusCode::OK.as_u16().to_string(), response);
        } else if about.answers.is_empty() {
            responses.insert(StatusCode::OK.as_u16().to_string(), json!({ "description": "Done" }));
        }
        for (status, description) in refusals(route, about) {
            let refusal = json!({ "description": description, "content": problem() });
            responses.entry(status.as_u16().to_string()).or_insert(refusal);
        }
        Value::Object(responses)
    }

    /// Builds the document.
    ///
    /// # Panics
    /// If a type is serialised with another schema than it is deserialised with: then it needs two
    /// names.
    pub(crate) fn finish(mut self) -> Value {
        let _named = self.answers.subschema_for::<Problem>();
        let mut schemas = self.answers.take_definitions(true);
        for (name, schema) in self.requests.take_definitions(true) {
            let before = schemas.insert(name.clone(), schema.clone());
            assert!(before.is_none_or(|before| before == schema), "{name} is two shapes; rename one");
        }
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "URR",
                "version": env!("CARGO_PKG_VERSION"),
                "summary": "Concert tickets, when a million people come at once.",
                "description": DESCRIPTION,
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "responses": { "Problem": { "description": "What went wrong", "content": problem() } },
                "securitySchemes": {
                    "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
                    "cookie": { "type": "apiKey", "in": "cookie", "name": "access_token" },
                },
            },
        })
    }
}

/// Returns the error statuses of a route: from its row in the table, from its inputs, and from its
/// own description. The list is complete, so a status that is not in it is a bug.
fn refusals(route: &Route, about: &About) -> BTreeMap<StatusCode, &'static str> {
    let (has_body, changes) = (about.body.is_some(), route.method != Method::GET || route.any_method);
    let has_parameters = parameter_names(route.path).next().is_some();
    let Policy { access, line, limit, .. } = route.policy;
    let guarded = access == Access::Admin || line != Line::No;
    let known = [
        (StatusCode::BAD_REQUEST, true, "The request makes no sense as it is"),
        (
            StatusCode::UNAUTHORIZED,
            route.refuses_bad_tokens(true),
            "Nobody is signed in, or the token is not good any more",
        ),
        (
            StatusCode::FORBIDDEN,
            guarded || changes,
            "The caller may not do that, has to wait in line first, or is a page of another site",
        ),
        (StatusCode::NOT_FOUND, has_parameters, "There is no such thing"),
        (StatusCode::REQUEST_TIMEOUT, has_body, "The body did not arrive in time"),
        (StatusCode::PAYLOAD_TOO_LARGE, changes, "The body is too large"),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, has_body, "The body is not JSON"),
        (
            StatusCode::TOO_MANY_REQUESTS,
            limit.is_some(),
            "Too many requests; `Retry-After` says when to come back",
        ),
        (StatusCode::INTERNAL_SERVER_ERROR, true, "The server failed"),
        (StatusCode::SERVICE_UNAVAILABLE, true, "A part of the server is away or has too much to do"),
        (StatusCode::GATEWAY_TIMEOUT, true, "It took too long"),
    ];
    let follows = known.into_iter().filter(|(_, applies, _)| *applies);
    let own = about.refusals.iter().map(|status| (*status, status.canonical_reason().unwrap_or("Refused")));
    own.chain(follows.map(|(status, _, description)| (status, description))).collect()
}

/// Removes `null` from a parameter's schema: a query string cannot contain it.
fn without_null(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    let is_null = |one: &Value| one.is_null() || one == "null" || one["type"] == "null";
    for name in ["type", "enum", "anyOf"] {
        if let Some(Value::Array(either)) = schema.get_mut(name) {
            either.retain(|one| !is_null(one));
        }
    }
    if let Some([name]) = schema.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        let name = name.clone();
        schema.insert("type".to_owned(), name);
    }
    if let Some([Value::Object(one)]) = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        // The description of the parameter takes precedence over that of its type.
        let mut one = one.clone();
        schema.remove("anyOf");
        one.append(schema);
        *schema = one;
    }
    schema.retain(|name, value| name != "default" || !value.is_null());
}

fn problem() -> Value {
    json!({ PROBLEM_JSON: { "schema": { "$ref": "#/components/schemas/Problem" } } })
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '-']).filter(|word| !word.is_empty() && *word != "api");
    let words: Vec<_> = words.map(|word| word.trim_matches(['{', '}', '*']).replace('.', "_")).collect();
    format!("{}_{}", route.method.as_str().to_ascii_lowercase(), words.join("_"))
}

/// Returns the parameters of a path, in order.
fn parameter_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| name.trim_start_matches('*'))
}

fn security(access: Access) -> Value {
    match access {
        Access::Public => json!([]),
        Access::User => json!([{ "bearer": [] }, { "cookie": [] }]),
        // The scope is the required role.
        Access::Admin => json!([{ "bearer": ["admin"] }, { "cookie": ["admin"] }]),
    }
}

#[cfg(test)]
mod tests;
