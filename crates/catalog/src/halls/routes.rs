//! HTTP routes of halls. No rules, no SQL.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use urr_contracts::catalog::{Catalog, Layout, ListLayouts, Section};
use urr_http::{ADMIN, About, Caller, Json, Problem, Routes, StatusCode};
use urr_kernel::LayoutId;
use urr_rpc::{Ctx, problem};

use crate::api::Api;

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .get("/api/admin/seat-layouts", ADMIN, list)
        .about(About::new("Plans of halls").answer::<ListBody>(StatusCode::OK))
}

async fn list(State(Api(catalog)): State<Api>, ctx: Ctx, caller: Caller) -> Result<Json<ListBody>, Problem> {
    caller.admin()?;
    let found = catalog.layouts(&ctx, ListLayouts {}).await.map_err(|error| problem(&error))?;
    Ok(Json(ListBody { layouts: found.layouts.into_iter().map(LayoutRow::from).collect() }))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SeatLayouts")]
struct ListBody {
    layouts: Vec<LayoutRow>,
}

#[derive(Serialize, JsonSchema)]
struct LayoutRow {
    id: LayoutId,
    name: String,
    description: String,
    total_seats: u32,
    layout_config: LayoutConfig,
}

#[derive(Serialize, JsonSchema)]
struct LayoutConfig {
    sections: Vec<Section>,
}

impl From<Layout> for LayoutRow {
    fn from(layout: Layout) -> Self {
        let Layout { id, name, description, total_seats, sections } = layout;
        Self { id, name, description, total_seats, layout_config: LayoutConfig { sections } }
    }
}
