#![doc = include_str!("../README.md")]

mod accounts;
mod api;
#[cfg(test)]
mod fixture;
mod identity;
mod links;
mod lockout;
mod mail;
mod passwords;
mod pii;
mod scans;
mod second_factor;
mod service;
mod sessions;
mod settings;
mod social;

use std::sync::Arc;

use urr_db::{Domain, Sql, migrations};
use urr_http::{RoleRoutes, RouteName, Routes};
use urr_jobs::Reconciler;

pub use accounts::import::{BadLine, ImportError, Imported};
pub use identity::{
    portone::{BadPortOne, PortOne, PortOneConfig},
    provider::{Finding, IdentityProvider, Person, ProviderError, Window},
    sandbox::Sandbox,
};
pub use lockout::limit::{LoginLimit, NotNow};
pub use passwords::{HashCost, Hashing};
pub use pii::{BadKeys, IndexKey, Pii, PiiKeys, WrongKeys};
pub use service::{OnRevoked, Parts, Service};
pub use sessions::rules::revocation_life;
pub use settings::{IdentityKind, PiiKey, SecondFactor, Settings};
pub use social::{
    BadPage, GoogleConfig, OAuthConfig, Social, SocialConfig,
    settings::{Google, Kakao, Naver},
};

/// Failure of a method of the service.
type Failure = urr_kernel::Failure<urr_contracts::auth::Error>;

/// The domain's tables.
pub static DOMAIN: Domain = Domain { name: "auth", migrations: migrations!["0001_accounts"] };

/// Every statement the domain can run; a test prepares them on both engines.
pub fn statements() -> Vec<&'static Sql> {
    [
        accounts::store::STATEMENTS,
        accounts::closing::STATEMENTS,
        identity::store::STATEMENTS,
        links::STATEMENTS,
        lockout::store::STATEMENTS,
        pii::store::STATEMENTS,
        second_factor::store::STATEMENTS,
        sessions::store::STATEMENTS,
        sessions::sweep::STATEMENTS,
        social::store::STATEMENTS,
    ]
    .concat()
}

/// Creates the service. Call [`check_keys`] before serving requests.
pub fn build(parts: Parts) -> Arc<Service> {
    Arc::new(Service::new(parts))
}

/// Returns an error unless the configured keys match the database. With other keys no user could
/// sign in, and existing addresses could be registered again.
pub async fn check_keys(service: &Service) -> Result<(), WrongKeys> {
    service.check_keys().await
}

/// Imports accounts from another system, one JSON object per line: `email`, `name`, `passwordHash`
/// (bcrypt or Argon2id), and optionally `phone` and `emailVerified`. All lines are validated before
/// the first account is created.
pub async fn import(
    service: &Service,
    file: &mut (impl std::io::BufRead + std::io::Seek),
) -> Result<Imported, ImportError> {
    accounts::import::import(service, file).await
}

/// How the gateway treats the public routes.
pub static ROLE: RoleRoutes = RoleRoutes {
    reads_token: true,
    issues_tokens: true,
    ..RoleRoutes::new("auth", "Sign-in is unavailable right now. Please try again in a moment.")
};

/// The public routes.
pub fn routes(service: &Arc<Service>) -> Routes {
    api_routes().with_state(api::Api(Arc::clone(service)))
}

/// The public routes for the API document, for processes that do not serve them.
pub fn described() -> Vec<RouteName> {
    api_routes().names().to_vec()
}

fn api_routes() -> Routes<api::Api> {
    accounts::routes::routes()
        .merge(identity::routes::routes())
        .merge(passwords::routes::routes())
        .merge(second_factor::routes::routes())
        .merge(sessions::routes::routes())
        .merge(social::routes::routes())
        .merge(social::link_routes::routes())
}

/// The background jobs of this domain.
pub fn reconcilers(service: &Arc<Service>) -> Vec<Arc<dyn Reconciler>> {
    let mut reconcilers =
        urr_mail::reconcilers(&service.mails, Arc::clone(service) as Arc<dyn urr_mail::Compose>);
    let own: [Arc<dyn Reconciler>; 3] = [
        Arc::new(sessions::sweep::Sweep(Arc::clone(service))),
        Arc::new(accounts::closing::Tend(Arc::clone(service))),
        Arc::new(pii::reseal::Reseal(Arc::clone(service))),
    ];
    reconcilers.extend(own);
    reconcilers
}
