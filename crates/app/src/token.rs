//! `urr token`: an access token for scripts and tests.

use urr_kernel::{Clock, Ids, Role};
use urr_passes::access::{self, Access, Signer};

use crate::{
    cli::{TokenArgs, TokenRole},
    config::Values,
    failure::Failure,
    say::say,
};

/// Prints a token signed with this installation's key. The rest of the configuration is not
/// checked, so the command works with any roles.
pub(crate) fn token(values: &Values, args: &TokenArgs) -> Result<(), Failure> {
    let path = values.secrets_path();
    let secret = values.signing_secret();
    let secret =
        secret.map_err(|error| Failure::because(format!("{} cannot be read", path.display()), &error))?;
    let Some(secret) = secret else {
        return Err(Failure::new(format!(
            "there is no key to sign with: `security.secret` is not set and {} does not exist; run `urr serve` once, or set \
             URR_SECURITY_SECRET",
            path.display()
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
