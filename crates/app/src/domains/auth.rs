//! The role `auth`: accounts and sessions.

use urr_auth::{Service, Settings};
use urr_contracts::auth::{self, Auth};
use urr_passes::challenge;

use super::{Build, Declaration, Part, RemoteUse};
use crate::{failure::Failure, serve, stores, wire};

pub(crate) static ROLE: Declaration = Declaration {
    tables: Some(&urr_auth::DOMAIN),
    routes: Some(|| (&urr_auth::ROLE, urr_auth::described())),
    remote: Some(RemoteUse {
        doc: "Internal listener of `auth` if it does not run here: polled several times a second for revoked \
              sessions. Left out, tokens of revoked sessions are accepted until they expire, at most an hour later; \
              the `production` profile refuses that.",
        by_guards: Some(|config| config.remote.of(&ROLE).is_some()),
    }),
    ..Declaration::new("auth", build)
};

/// Returns `None` without keys: commands that do not serve need no accounts.
fn build(build: &mut Build<'_>) -> Result<Option<Part>, Failure> {
    let Build { config, clock, ids, guard_state, .. } = *build;
    let access_keys = wire::access_keys(config);
    let Some(pii) = config.auth.pii().filter(|_| !access_keys.is_empty()) else { return Ok(None) };
    let site_url = config.public_url.as_ref().map(|url| url.expose().to_owned());
    let service = urr_auth::build(urr_auth::Parts {
        db: build.db(&ROLE),
        clock: clock.clone(),
        ids: ids.clone(),
        access_keys,
        challenge_keys: config.secrets().map(|secret| challenge::key(&secret.0)).collect(),
        secrets: wire::secrets(config),
        pii,
        social: stores::social(config, clock)?,
        mailer: stores::mailer(config)?,
        identity: stores::identity(config, clock)?,
        on_revoked: guard_state.on_revoked(),
        login_limit: guard_state.login_limit(),
        settings: Settings {
            site_url: site_url.unwrap_or_else(|| serve::url(config.listen)),
            ..config.auth.clone()
        },
    });
    let part = Part {
        routes: Some(urr_auth::routes(&service)),
        internal: auth::internal_routes(service.clone(), clock.clone(), ids.clone()),
        reconcilers: urr_auth::reconcilers(&service),
        ..Part::default()
    };
    build.services.add::<Service>(service.clone());
    build.services.add::<dyn Auth>(service);
    Ok(Some(part))
}
