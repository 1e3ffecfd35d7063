//! The role `catalog`: events, halls and seat plans.

use urr_catalog::Service;
use urr_contracts::catalog::{self, Catalog};

use super::{Build, Declaration, Part, RemoteUse};
use crate::{failure::Failure, roles::Role};

pub(crate) static ROLE: Declaration = Declaration {
    tables: Some(&urr_catalog::DOMAIN),
    routes: Some(|| (&urr_catalog::ROLE, urr_catalog::described())),
    remote: Some(RemoteUse {
        doc: "Internal listener of the catalog if it does not run here, or of a load balancer in front of several.",
        by_guards: None,
    }),
    listens_to: &[Role::of(&super::tickets::ROLE)],
    ..Declaration::new("catalog", build)
};

#[expect(clippy::unnecessary_wraps, reason = "every role is built by a function of this type")]
fn build(build: &mut Build<'_>) -> Result<Option<Part>, Failure> {
    let Build { clock, ids, .. } = *build;
    let service = urr_catalog::build(urr_catalog::Parts {
        db: build.db(&ROLE),
        clock: clock.clone(),
        ids: ids.clone(),
    });
    let part = Part {
        routes: Some(urr_catalog::routes(&service)),
        internal: catalog::internal_routes(service.clone(), clock.clone(), ids.clone()),
        consumers: urr_catalog::consumers(&service),
        ..Part::default()
    };
    build.services.add::<Service>(service.clone());
    build.services.add::<dyn Catalog>(service);
    Ok(Some(part))
}
