//! The role `site`: the pages.

use super::{Build, Declaration, Part};
use crate::{failure::Failure, roles::Role};

pub(crate) static ROLE: Declaration = Declaration {
    routes: Some(|| (&urr_site::ROLE, urr_site::described())),
    calls: &[Role::of(&super::auth::ROLE), Role::of(&super::catalog::ROLE)],
    ..Declaration::new("site", build)
};

/// Returns `None` without `auth`, which needs keys.
#[expect(clippy::unnecessary_wraps, reason = "every role is built by a function of this type")]
fn build(build: &mut Build<'_>) -> Result<Option<Part>, Failure> {
    let Some(auth) = build.services.peer(build.remote) else { return Ok(None) };
    let site = urr_site::build(urr_site::Parts {
        auth,
        catalog: build.peer(),
        clock: build.clock.clone(),
        ids: build.ids.clone(),
    });
    Ok(Some(Part { routes: Some(urr_site::routes(&site)), ..Part::default() }))
}
