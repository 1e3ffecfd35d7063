//! The API document, wherever roles run.

use serde_json::{Map, Value};
use urr_e2e::{
    http::{Connection, Request},
    installation::Installation,
};

/// Every operation and every shape of a document, by where it stands.
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
    leads_somewhere(&api, &api);
    Ok(parts)
}

/// Every reference in the document.
fn leads_somewhere(api: &Value, node: &Value) {
    if let Some(reference) = node["$ref"].as_str() {
        let found = reference.strip_prefix('#').and_then(|place| api.pointer(place));
        assert!(found.is_some(), "{reference} leads nowhere");
    }
    let members = node.as_object().into_iter().flat_map(Map::values);
    members.chain(node.as_array().into_iter().flatten()).for_each(|member| leads_somewhere(api, member));
}

/// An operation without what can go wrong on the way to it.
fn behind_the_way(mut part: Value) -> Value {
    if let Some(Value::Object(responses)) = part.get_mut("responses") {
        responses.remove("502");
        responses.remove("508");
    }
    part
}

/// What the front describes is what the processes behind it say of themselves, no more and no less, but for the way there.
pub(crate) async fn the_front_describes_everything_behind_it(
    installation: &Installation,
) -> anyhow::Result<()> {
    let mut all = Map::new();
    for listener in installation.listeners() {
        // The front itself is asked below; where there is only one process it is all of them.
        if listener != installation.front || installation.front == installation.other {
            all.extend(document(Connection::to(listener)).await?);
        }
    }
    let front = document(installation.connect()).await?;
    assert_eq!(front.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
    let front: Map<_, _> = front.into_iter().map(|(name, part)| (name, behind_the_way(part))).collect();
    assert_eq!(front, all);
    let login = &front["post /api/auth/login"];
    assert!(login["requestBody"].is_object() && login["responses"]["200"]["content"].is_object(), "{login}");
    Ok(())
}
