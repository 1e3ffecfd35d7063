//! The API document (`openapi.json`), however roles are split.

use serde_json::{Map, Value};
use urr_e2e::{
    http::{Connection, Request},
    installation::Installation,
};

/// Every operation and schema of a document, by its path in it.
async fn document(mut listener: Connection) -> anyhow::Result<Map<String, Value>> {
    let answer = listener.send(&Request::get("/api/openapi.json")).await?;
    assert_eq!(answer.status, 200, "{}", answer.show());
    let api = answer.json();
    let mut parts = Map::new();
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            parts.insert(format!("{method} {path}"), operation.clone());
        }
    }
    for (name, shape) in api["components"]["schemas"].as_object().into_iter().flatten() {
        parts.insert(format!("#{name}"), shape.clone());
    }
    assert_references_resolve(&api, &api);
    Ok(parts)
}

/// Asserts that every `$ref` below `node` resolves.
fn assert_references_resolve(api: &Value, node: &Value) {
    if let Some(reference) = node["$ref"].as_str() {
        let found = reference.strip_prefix('#').and_then(|place| api.pointer(place));
        assert!(found.is_some(), "{reference} does not resolve");
    }
    let members = node.as_object().into_iter().flat_map(Map::values);
    members
        .chain(node.as_array().into_iter().flatten())
        .for_each(|member| assert_references_resolve(api, member));
}

/// An operation without the errors that the gateway adds.
fn without_gateway_errors(mut part: Value) -> Value {
    if let Some(Value::Object(responses)) = part.get_mut("responses") {
        responses.remove("502");
        responses.remove("508");
    }
    part
}

/// The gateway's document is the union of those of the processes behind it, except for the
/// gateway's own errors.
pub(crate) async fn gateway_document_covers_every_role(installation: &Installation) -> anyhow::Result<()> {
    let mut all = Map::new();
    for listener in installation.listeners() {
        // The gateway itself is read below; with a single process it is all of them.
        if listener != installation.front || installation.front == installation.other {
            all.extend(document(Connection::to(listener)).await?);
        }
    }
    let front = document(installation.connect()).await?;
    assert_eq!(front.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
    let front: Map<_, _> =
        front.into_iter().map(|(name, part)| (name, without_gateway_errors(part))).collect();
    assert_eq!(front, all);
    let login = &front["post /api/auth/login"];
    assert!(login["requestBody"].is_object() && login["responses"]["200"]["content"].is_object(), "{login}");
    Ok(())
}
