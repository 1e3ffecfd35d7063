//! The document is valid for every kind of route.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use urr_http::{ADMIN, Class, PUBLIC, Routes};

use super::*;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Thing {
    event_id: uuid::Uuid,
    /// More of them.
    inner: Vec<Inner>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Inner {
    count: u32,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Query {
    /// Where to begin.
    page: u32,
    status: Option<String>,
    /// Which kind.
    kind: Option<Kind>,
}

#[derive(Deserialize, JsonSchema)]
enum Kind {
    Odd,
    Even,
}

static SAMPLE: RoleRoutes = RoleRoutes::new("sample", "Samples are unavailable right now.");

fn document() -> Value {
    let routes = Routes::<()>::new()
        .get("/api/events", PUBLIC, async || "")
        .about(About::new("Things").query::<Query>().answer::<Thing>(StatusCode::OK))
        .post("/api/admin/events", ADMIN, async || "")
        .about(
            About::new("Makes one")
                .body::<Thing>()
                .cookie("thing", "Which one.")
                .header::<Kind>("Thing-Kind", "Which kind, unless the body says so.")
                .answer::<Thing>(StatusCode::CREATED)
                .refuses([StatusCode::CONFLICT]),
        )
        .get("/api/events/{id}", PUBLIC, async || "")
        .about(About::new("One").path::<uuid::Uuid>("id").answer::<Thing>(StatusCode::OK))
        .get("/api/queue/admin/live/{id}", ADMIN.limit(Class::Queue).streaming(), async || "")
        .about(About::new("Things as they come").events::<Thing>())
        .put("/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue), async || "")
        .about(About::new("How many").body::<Inner>())
        .post("/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue), async || "")
        .about(About::new("How many, in another way").query::<Inner>());
    let mut document = Document::new();
    for name in routes.names() {
        document.add(&SAMPLE, name);
    }
    document.finish()
}

/// Checks the requirements of the specification that apply to our documents.
pub(super) fn check(api: &Value) {
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1."));
    assert!(api["info"]["title"].is_string() && api["info"]["version"].is_string());
    let mut ids = HashSet::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        assert!(path.starts_with('/') && !path.contains('*'), "{path}");
        for (method, operation) in methods.as_object().unwrap() {
            let what = format!("{method} {path}");
            assert!(["get", "put", "post", "delete", "patch"].contains(&method.as_str()), "{what}");
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{what}: the operation id is not unique"
            );
            check_parameters(path, operation, &what);
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{what}");
            // The error statuses of another process are not known here.
            assert_eq!(responses.contains_key("default"), responses.contains_key("2XX"), "{what}");
            for (status, response) in responses {
                let is_status = ["default", "2XX"].contains(&status.as_str())
                    || status.parse().is_ok_and(|status: u16| (100..600).contains(&status));
                assert!(
                    is_status && (response["description"].is_string() || response["$ref"].is_string()),
                    "{what} {status}"
                );
            }
            for scheme in operation["security"].as_array().unwrap() {
                for name in scheme.as_object().unwrap().keys() {
                    assert!(api["components"]["securitySchemes"][name].is_object(), "{what}: {name}");
                }
            }
        }
    }
    check_references(api, api);
}

fn check_parameters(path: &str, operation: &Value, what: &str) {
    let parameters = operation["parameters"].as_array().unwrap();
    let of = |place: &str| -> Vec<_> {
        let of = parameters.iter().filter(|parameter| parameter["in"] == place);
        of.map(|parameter| parameter["name"].as_str().unwrap()).collect()
    };
    assert_eq!(of("path"), parameter_names(path).collect::<Vec<_>>(), "{what}");
    let places = [of("path").len(), of("query").len(), of("cookie").len(), of("header").len()];
    assert_eq!(places.iter().sum::<usize>(), parameters.len(), "{what}");
    for parameter in parameters {
        assert!(parameter["schema"].is_object(), "{what}: {parameter}");
        assert!(parameter["in"] != "path" || parameter["required"] == true, "{what}: {parameter}");
    }
}

fn check_references(api: &Value, node: &Value) {
    match node {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref") {
                let pointer = reference
                    .as_str()
                    .unwrap()
                    .strip_prefix('#')
                    .expect("references stay within the document");
                assert!(api.pointer(pointer).is_some(), "{reference} leads nowhere");
            }
            assert!(!members.contains_key("$defs") && !members.contains_key("$schema"), "{node}");
            members.values().for_each(|member| check_references(api, member));
        }
        Value::Array(items) => items.iter().for_each(|item| check_references(api, item)),
        _ => {}
    }
}

#[test]
fn schemas_parameters_and_errors_are_in_the_document() {
    let api = document();
    check(&api);
    let list = &api["paths"]["/api/events"]["get"];
    let names: Vec<_> = list["parameters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["kind", "page", "status"]);
    assert_eq!(list["parameters"][1]["description"], "Where to begin.");
    assert_eq!(
        list["parameters"][2]["schema"],
        json!({ "type": "string" }),
        "a query string cannot contain null"
    );
    let kind = &list["parameters"][0];
    assert_eq!(kind["schema"], json!({ "type": "string", "enum": ["Odd", "Even"] }));
    assert_eq!(kind["description"], "Which kind.");
    assert_eq!(
        (&list["parameters"][1]["required"], &list["parameters"][2]["required"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(list["security"], json!([]));
    let statuses = |operation: &Value| -> Vec<String> {
        operation["responses"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(statuses(list), ["200", "400", "401", "429", "500", "503", "504"]);

    let create = &api["paths"]["/api/admin/events"]["post"];
    let reference = json!({ "$ref": "#/components/schemas/Thing" });
    assert_eq!(create["requestBody"]["content"]["application/json"]["schema"], reference);
    assert_eq!(create["responses"]["201"]["content"]["application/json"]["schema"], reference);
    assert_eq!(
        statuses(create),
        ["201", "400", "401", "403", "408", "409", "413", "415", "429", "500", "503", "504"],
        "the list of statuses is complete"
    );
    assert_eq!(create["parameters"][0]["in"], "cookie");
    let header = json!({
        "name": "Thing-Kind",
        "in": "header",
        "required": false,
        "description": "Which kind, unless the body says so.",
        "schema": { "type": "string", "enum": ["Odd", "Even"] },
    });
    assert_eq!(create["parameters"][1], header, "the schema of a header is inlined");
    assert_eq!(create["security"], json!([{ "bearer": ["admin"] }, { "cookie": ["admin"] }]));
    assert_eq!(api["components"]["schemas"]["Thing"]["properties"]["eventId"]["format"], "uuid");
    assert!(api["components"]["schemas"].get("Query").is_none(), "query types are not named schemas");

    let id = &api["paths"]["/api/events/{id}"]["get"]["parameters"][0];
    assert_eq!(id["schema"], json!({ "type": "string", "format": "uuid" }));
    let live = &api["paths"]["/api/queue/admin/live/{id}"]["get"]["responses"]["200"]["content"];
    let events = &live["text/event-stream"]["schema"];
    assert_eq!((&events["type"], &events["contentSchema"]), (&json!("string"), &reference));
    assert!(live.get("application/json").is_none());
    assert_eq!(api["components"]["schemas"]["Problem"]["properties"]["code"]["type"], "string");
}

#[test]
#[should_panic(expected = "leads nowhere")]
fn a_dangling_reference_is_detected() {
    let mut api = document();
    api["components"]["schemas"].as_object_mut().unwrap().remove("Thing");
    check(&api);
}

#[test]
#[should_panic(expected = "two shapes")]
fn a_name_for_two_schemas_is_detected() {
    mod other {
        #[derive(super::Deserialize, super::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        pub(super) struct Thing {
            other: bool,
        }
    }
    let routes = Routes::<()>::new()
        .post("/api/admin/events", ADMIN, async || "")
        .about(About::new("x").body::<other::Thing>().answer::<Thing>(StatusCode::OK));
    let mut document = Document::new();
    document.add(&SAMPLE, &routes.names()[0]);
    document.finish();
}
