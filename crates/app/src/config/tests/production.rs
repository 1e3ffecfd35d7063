//! The `production` profile: required settings and changed defaults.

use urr_auth::{IdentityKind, SecondFactor};

use super::{ConfigInput, SECRET};

/// Adds a mail server, which production requires.
fn with_mail(given: ConfigInput) -> ConfigInput {
    let given = given.env("URR_MAIL_KIND", "smtp").env("URR_MAIL_SMTP_SERVER", "mail:587");
    given.env("URR_MAIL_FROM", "URR <a@b.kr>")
}

#[test]
fn production_reports_every_missing_secret_at_once() {
    let given = ConfigInput::new().file("profile = \"production\"\ninternal.listen = \"127.0.0.1:3002\"\n");
    let problems = given.problems();
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(
        problems[0].contains("`security.secret` is not set")
            && problems[0].contains("URR_SECURITY_SECRET_FILE")
    );
    assert!(problems[1].contains("`auth.index_key` is not set"));
    assert!(
        problems[2].contains("`mail.smtp_server` is not set") && problems[2].contains("mail.kind = smtp")
    );
    assert!(problems[3].contains("`internal.token` is not set"));
    let given = given.env("URR_SECURITY_SECRET", SECRET).env("URR_AUTH_INDEX_KEY", SECRET);
    let config = with_mail(given).env("INTERNAL_API_TOKEN", SECRET).config();
    assert!(config.is_complete() && config.secure_cookies());
    assert_eq!(config.auth.admin_second_factor, Some(SecondFactor::Required));
    assert_eq!(config.internal.token.unwrap().expose(), SECRET);
    assert!(!config.demo, "no demo data in production");
}

#[test]
fn identities_are_a_sandbox_locally_and_off_or_portone_in_production() {
    let portone = ConfigInput::new()
        .env("URR_AUTH_PORTONE_SECRET", "hush")
        .env("URR_AUTH_PORTONE_STORE_ID", "store-1")
        .env("URR_AUTH_PORTONE_CHANNEL_KEY", "channel-key-1");
    assert_eq!(portone.problems().len(), 3, "the sandbox uses none of them");
    let portone = portone.env("URR_AUTH_IDENTITY", "portone").config();
    let reached = portone.auth.portone().unwrap();
    assert_eq!((reached.base_url.as_str(), reached.store_id.as_str()), ("https://api.portone.io", "store-1"));
    assert!(!format!("{:?}", portone.auth).contains("hush"));
    assert_eq!(ConfigInput::new().env("URR_AUTH_IDENTITY", "portone").problems().len(), 3);

    assert_eq!(ConfigInput::new().config().auth.identity, Some(IdentityKind::Sandbox));
    let production = || {
        let given = ConfigInput::new().env("URR_PROFILE", "production").env("URR_SECURITY_SECRET", SECRET);
        with_mail(given).env("URR_AUTH_INDEX_KEY", SECRET)
    };
    assert_eq!(production().config().auth.identity, Some(IdentityKind::Off));
    let filed = production().env("URR_MAIL_KIND", "file").problems();
    assert!(filed.iter().any(|problem| problem.contains("which mail.kind = file does not")), "{filed:?}");
    let refused = production().env("URR_AUTH_IDENTITY", "sandbox").problem();
    assert!(refused.contains("made-up persons"), "{refused}");
    let allowed =
        production().env("URR_AUTH_IDENTITY", "sandbox").env("URR_AUTH_IDENTITY_ALLOW_SANDBOX", "true");
    assert_eq!(allowed.config().auth.identity, Some(IdentityKind::Sandbox));
}
