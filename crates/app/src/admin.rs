//! `urr admin`, and the administrator that the first start creates.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use urr_auth::{BadLine, ImportError, Service};
use urr_contracts::auth::{Auth as _, EnsureAdmin, Error, ResetSecondFactor, Sensitive};
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids};
use urr_rpc::Ctx;

use crate::{
    cli::AdminCommand,
    config::{Config, Profile, Values},
    domains,
    failure::Failure,
    say::{complain, say},
    serve,
    stores::Databases,
    wire::Domains,
};

/// The administrator that the first start creates unless one is configured. RFC 6761 reserves
/// `.localhost` for this machine, so mail to it cannot reach a stranger.
const EMAIL: &str = "admin@urr.localhost";

/// The default name of an administrator.
pub(crate) const NAME: &str = "Administrator";

/// A new administrator.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewAdmin {
    /// The account's address.
    pub email: String,
    /// The account's password.
    pub password: Password,
}

/// The password of a new administrator.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Password {
    /// Generated, and printed once.
    Generated(Sensitive),
    /// Given by the operator.
    Given,
    /// The account existed and keeps its password.
    Kept,
}

/// Creates the first administrator: the configured one, or, with SQLite and the local profile, one
/// with a generated password. Returns `None` if there is an administrator.
pub(crate) async fn first(
    config: &Config,
    auth: &Service,
    clock: &Clock,
    ids: &Ids,
) -> Result<Option<NewAdmin>, Failure> {
    let embedded = config.profile == Profile::Local && config.storage.is_sqlite();
    let (email, password) = match (&config.admin.email, &config.admin.password) {
        (Some(email), Some(password)) => (email.0.as_str(), Some(Sensitive::new(password.expose()))),
        _ if embedded => (EMAIL, None),
        _ => return Ok(None),
    };
    match ensure(auth, (clock, ids), (email, NAME), password, false).await {
        // Anyone can register with the address, so it is not promoted. The server starts
        // nevertheless.
        Err(Error::AlreadyRegistered) => {
            complain!(
                "urr: there is no administrator: {email} is an existing account, and a start never promotes one"
            );
            complain!(
                "urr: if it belongs to the right person, run: urr admin create --email {email} --promote"
            );
            Ok(None)
        }
        made => made.map_err(|error| Failure::because("the first administrator cannot be created", &error)),
    }
}

/// `urr admin`.
pub(crate) async fn admin((values, config): (Values, Config), command: AdminCommand) -> Result<(), Failure> {
    if !config.roles.has(&domains::auth::ROLE) {
        return Err(Failure::new(format!("roles = {} does not include auth; add it", config.roles)));
    }
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    let databases = Databases::open(&config)?;
    let config = serve::with_secrets(values, config, &ids)?;
    let domains = Domains::build(&config, &databases, &clock, &ids, &Tasks::new())?;
    serve::prepare(&config, &databases, &clock).await?;
    let auth = domains
        .services
        .get::<urr_auth::Service>()
        .expect("with the role auth and its keys the service exists");
    serve::check_keys(&auth).await?;
    match command {
        AdminCommand::Create { email, name, password_stdin, promote } => {
            let password = if password_stdin { Some(read_password()?) } else { None };
            create(&auth, (&clock, &ids), (&email, &name), password, promote).await
        }
        AdminCommand::Import { file } => import(&auth, &file).await,
        AdminCommand::ResetSecondFactor { email } => {
            let (ctx, request) = (Ctx::system(&ids, &clock), ResetSecondFactor { email: email.clone() });
            auth.reset_second_factor(&ctx, request)
                .await
                .map_err(|error| Failure::because(&email, &error))?;
            say!("{email}: second factor removed, all sessions ended");
            Ok(())
        }
    }
}

/// `urr admin create`.
async fn create(
    auth: &Service,
    runtime: (&Clock, &Ids),
    (email, name): (&str, &str),
    password: Option<Sensitive>,
    promote: bool,
) -> Result<(), Failure> {
    let made = ensure(auth, runtime, (email, name), password, promote).await;
    if made == Err(Error::AlreadyRegistered) {
        return Err(Failure::new(format!(
            "{email} is an existing account; if it belongs to the right person, add --promote: it keeps its password"
        )));
    }
    match made.map_err(|error| Failure::because(email, &error))? {
        Some(made) => made.tell(""),
        None => {
            return Err(Failure::new(
                "there is an administrator already; administrators appoint others with PUT /api/admin/users/{id}/role",
            ));
        }
    }
    Ok(())
}

/// `urr admin import`.
async fn import(auth: &Service, path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| Failure::because(&shown, &error))?;
    match urr_auth::import(auth, &mut BufReader::new(file)).await {
        Ok(imported) => {
            say!("{} accounts imported, {} skipped: they already exist", imported.made, imported.skipped);
            Ok(())
        }
        Err(ImportError::BadLines(bad)) => {
            let invalid =
                bad.iter().map(|BadLine { number, reason }| format!("{shown}: line {number}: {reason}"));
            let mut lines: Vec<String> = invalid.collect();
            lines.push("nothing was imported; correct these lines first".to_owned());
            Err(Failure(lines))
        }
        Err(error) => Err(Failure::because(shown, &error)),
    }
}

fn read_password() -> Result<Sensitive, Failure> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::because("the password cannot be read", &error))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(Failure::new("standard input has no password in its first line"));
    }
    Ok(Sensitive::new(password))
}

async fn ensure(
    auth: &Service,
    (clock, ids): (&Clock, &Ids),
    (email, name): (&str, &str),
    password: Option<Sensitive>,
    promote: bool,
) -> Result<Option<NewAdmin>, Error> {
    let (email, name) = (email.to_owned(), name.to_owned());
    let request = EnsureAdmin { email: email.clone(), name, password, promote, only_if_none: true };
    let made = auth.ensure_admin(&Ctx::system(ids, clock), request).await?;
    let password = match (made.new, made.password) {
        (true, Some(generated)) => Password::Generated(generated),
        (true, None) => Password::Given,
        (false, _) => Password::Kept,
    };
    Ok(made.user.map(|_| NewAdmin { email, password }))
}

impl NewAdmin {
    /// Prints address and password, indented by `margin`.
    pub(crate) fn tell(&self, margin: &str) {
        let email = &self.email;
        match &self.password {
            Password::Generated(password) => {
                say!("{margin}admin    {email}, password {} (shown only once)", password.expose());
            }
            Password::Given => say!("{margin}admin    {email}, with the given password"),
            Password::Kept => {
                say!("{margin}admin    {email}, an existing account that keeps its password");
            }
        }
    }
}
