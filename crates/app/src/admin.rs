//! The first administrator, made by the first start or by `urr admin create`, and a second factor that was lost.

use std::io::BufRead as _;

use urr_auth::Service;
use urr_contracts::auth::{
    Auth as _, ChangePassword, EnsureAdmin, Error, Logout, Origin, ResetSecondFactor, Sensitive,
};
use urr_kernel::{Actor, Clock, Ids, Role as Rank, UserId};
use urr_rpc::{Ctx, REQUEST_BUDGET};

use crate::{
    cli::AdminCommand,
    config::{Config, Profile, Storage, Values},
    failure::Failure,
    roles::Role,
    say::{complain, say},
    serve,
    stores::Databases,
    wire::Domains,
};

/// Whose account the first start makes when nobody said. The name can never reach a mailbox of somebody else: RFC 6761 keeps
/// it for this machine.
const EMAIL: &str = "admin@urr.localhost";

/// What an administrator is called until they say otherwise.
pub(crate) const NAME: &str = "Administrator";

/// An administrator who was made just now.
#[derive(Debug)]
pub(crate) struct Made {
    /// Signs in with this address.
    pub email: String,
    /// And what.
    pub password: Password,
}

/// What a new administrator signs in with.
#[derive(Debug)]
pub(crate) enum Password {
    /// Made up, and told once.
    Generated(Sensitive),
    /// The one that was given.
    Given,
    /// The one that was given is not good enough, so it is the generated one.
    Refused(Sensitive, Error),
    /// The account was there before and kept its own.
    Kept,
}

/// Makes the administrator without whom a first start would be useless: the configured one, or one with a generated password where
/// somebody sits at the terminal. Nothing if there is one already.
pub(crate) async fn first(
    config: &Config,
    auth: &Service,
    clock: &Clock,
    ids: &Ids,
) -> Result<Option<Made>, Failure> {
    let embedded = config.profile == Profile::Local && matches!(config.storage, Storage::Sqlite { .. });
    let made = match &config.admin {
        Some(admin) => {
            let password = Some(Sensitive::new(admin.password.expose()));
            ensure(auth, (clock, ids), &admin.email, NAME, password).await
        }
        None if embedded => ensure(auth, (clock, ids), EMAIL, NAME, None).await,
        None => return Ok(None),
    };
    made.map_err(|error| Failure::because("the first administrator cannot be made", &error))
}

/// `urr admin`.
pub(crate) async fn admin((values, config): (Values, Config), command: AdminCommand) -> Result<(), Failure> {
    if !config.roles.has(Role::Auth) {
        return Err(Failure::new(format!("roles = {} has no accounts; add auth", config.roles)));
    }
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    let databases = Databases::open(&config)?;
    let config = serve::with_secrets(values, config, &ids)?;
    let domains = Domains::build(&config, &databases, &clock, &ids)?;
    serve::prepare(&config, &databases, &clock).await?;
    let auth = domains.auth.as_ref().expect("a process with accounts and keys has the service");
    serve::check_keys(auth).await?;
    match command {
        AdminCommand::Create { email, name, password_stdin } => {
            let password = if password_stdin { Some(read_password()?) } else { None };
            create(auth, (&clock, &ids), (&email, &name), password).await
        }
        AdminCommand::ResetSecondFactor { email } => {
            let (ctx, request) = (Ctx::system(&ids, &clock), ResetSecondFactor { email: email.clone() });
            auth.reset_second_factor(&ctx, request)
                .await
                .map_err(|error| Failure::because(&email, &error))?;
            say!("{email} has no second factor any more, and every session has ended");
            Ok(())
        }
    }
}

/// `urr admin create`.
async fn create(
    auth: &Service,
    ground: (&Clock, &Ids),
    (email, name): (&str, &str),
    password: Option<Sensitive>,
) -> Result<(), Failure> {
    let made = ensure(auth, ground, email, name, password).await;
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
    email: &str,
    name: &str,
    wanted: Option<Sensitive>,
) -> Result<Option<Made>, Error> {
    let request = EnsureAdmin { email: email.to_owned(), name: name.to_owned(), only_if_none: true };
    let made = auth.ensure_admin(&Ctx::system(ids, clock), request).await?;
    let Some(user) = made.user else { return Ok(None) };
    let password = match (made.password, wanted) {
        (None, _) => Password::Kept,
        (Some(generated), None) => Password::Generated(generated),
        (Some(generated), Some(wanted)) => {
            match replace(auth, (clock, ids), user, generated.clone(), wanted).await {
                Ok(()) => Password::Given,
                // The account is there, and nobody else will ever be told this.
                Err(why) => Password::Refused(generated, why),
            }
        }
    };
    Ok(Some(Made { email: email.to_owned(), password }))
}

/// Changes the generated password to the given one, as its owner would.
async fn replace(
    auth: &Service,
    (clock, ids): (&Clock, &Ids),
    user: UserId,
    current: Sensitive,
    new: Sensitive,
) -> Result<(), Error> {
    let ctx = || {
        let actor = Actor::User { id: user, role: Rank::Admin };
        Ctx::new(ids.next(), actor, clock.clone(), REQUEST_BUDGET)
    };
    let origin = Origin { address: String::new(), agent: "urr".to_owned() };
    let opened = auth.change_password(&ctx(), ChangePassword { current, new, origin }).await?;
    // Nobody is there to use the session that a change opens.
    let leave = Logout { session: Some(opened.session), refresh_token: None, everywhere: false };
    auth.logout(&ctx(), leave).await.map(|_| ())
}

impl Made {
    /// Says it to the person at the terminal, each line after `margin`.
    pub(crate) fn tell(&self, margin: &str) {
        let email = &self.email;
        match &self.password {
            Password::Generated(password) => {
                say!("{margin}admin    {email}, password {} (shown this once)", password.expose());
            }
            Password::Given => say!("{margin}admin    {email}, with the password that was given"),
            Password::Refused(password, why) => {
                complain!("urr: the password that was given is not used: {why}");
                say!("{margin}admin    {email}, password {} (shown this once)", password.expose());
            }
            Password::Kept => {
                say!("{margin}admin    {email}, an account that was there already and keeps its password");
            }
        }
    }
}
