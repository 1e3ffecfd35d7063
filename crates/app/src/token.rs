//! `urr token`: an access token for scripts and tests.

use urr_kernel::{Clock, Ids, Role};
use urr_passes::access::{self, Access, Signer};

use crate::{
    cli::{TokenArgs, TokenRole},
    config::{self, Config, Profile, Values},
    failure::Failure,
    say::say,
};

/// Prints a token signed with this installation's key.
pub(crate) fn token((values, config): (Values, Config), args: &TokenArgs) -> Result<(), Failure> {
    let config = with_generated(values, config)?;
    let Some(secret) = config.secret else {
        return Err(Failure::new(format!(
            "there is no key to sign with: `security.secret` is not set and {} does not exist; run `urr serve` once, or set \
             URR_SECURITY_SECRET",
            config::secrets_path(&config.data_dir).display()
        )));
    };
    let clock = Clock::system();
    let ids = Ids::random(clock.clone());
    let access = Access {
        user: args.user,
        role: match args.role {
            TokenRole::User => Role::User,
            TokenRole::Admin => Role::Admin,
        },
        email: None,
        session: ids.next(),
    };
    let signer = Signer::new(access::key(&secret.0), args.ttl);
    say!("{}", signer.sign(&access, ids.next(), clock.now()));
    Ok(())
}

/// The configuration with secrets that an earlier start has made, if it has.
pub(crate) fn with_generated(mut values: Values, config: Config) -> Result<Config, Failure> {
    if config.profile == Profile::Production {
        return Ok(config);
    }
    let path = config::secrets_path(&config.data_dir);
    let made = config::read_secrets(&config.data_dir)
        .map_err(|error| Failure::because(format!("{} cannot be read", path.display()), &error))?;
    for (info, text) in made.unwrap_or_default() {
        values.set_generated(info, text, path.clone());
    }
    Ok(Config::resolve(&values)?)
}
