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
    Ok(parts)
}

/// What the front describes is what the processes behind it say of themselves, no more and no less.
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
    assert_eq!(front, all);
    let login = &front["post /api/auth/login"];
    assert!(login["requestBody"].is_object() && login["responses"]["200"]["content"].is_object(), "{login}");
    Ok(())
}
