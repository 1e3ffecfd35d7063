//! Reading, checking, resolving and printing settings.

mod bus;
mod clock;
mod declared;
mod gateway;
mod production;
mod social;

use std::{ffi::OsString, fs, path::Path, time::Duration};

use urr_bus::BusKind;

use super::*;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The configuration from these environment variables alone.
pub(crate) fn of_env(variables: &[(&str, &str)]) -> Result<Config, Vec<Problem>> {
    let given = variables.iter().fold(ConfigInput::new(), |given, (name, value)| given.env(name, value));
    load(&given.input).map(|(_, config)| config)
}

/// An input of the configuration, with a temporary directory for the file.
struct ConfigInput {
    dir: tempfile::TempDir,
    input: Input,
}

impl ConfigInput {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let input = Input { working_dir: dir.path().to_owned(), ..Input::default() };
        Self { dir, input }
    }

    fn file(self, text: &str) -> Self {
        fs::write(self.dir.path().join("urr.toml"), text).unwrap();
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.input.env.push((OsString::from(name), OsString::from(value)));
        self
    }

    fn flag(mut self, name: &str, key: &str, value: &str) -> Self {
        self.input.flags.push(Flag { name: name.to_owned(), key: key.to_owned(), value: value.to_owned() });
        self
    }

    fn config(&self) -> Config {
        load(&self.input).unwrap().1
    }

    fn problems(&self) -> Vec<String> {
        load(&self.input).unwrap_err().iter().map(ToString::to_string).collect()
    }

    /// The only problem.
    fn problem(&self) -> String {
        let mut problems = self.problems();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        problems.remove(0)
    }
}

#[test]
fn without_configuration_everything_is_embedded() {
    let config = ConfigInput::new().config();
    assert_eq!(config.listen, "127.0.0.1:3001".parse().unwrap());
    assert_eq!(config.data_dir, Path::new("./urr-data"));
    assert_eq!(config.roles, Roles::all());
    assert!(config.storage.is_sqlite() && config.storage.group_commit);
    assert_eq!(config.bus.kind, BusKind::InProcess);
    assert!(!config.redis.is_on() && config.internal.listen.is_none() && config.demo);
    assert_eq!(config.auth.admin_second_factor, Some(SecondFactor::Off));
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let given = ConfigInput::new();
    assert_eq!(given.config().sale.hold, Duration::from_mins(5));
    let given = given.file("[sale]\nhold_secs = 60\n");
    assert_eq!(given.config().sale.hold, Duration::from_mins(1));
    let given = given.env("URR_SALE_HOLD_SECS", "70");
    assert_eq!(given.config().sale.hold, Duration::from_secs(70));
    let given = given.flag("--set", "sale.hold_secs", "80");
    assert_eq!(given.config().sale.hold, Duration::from_secs(80));
}

#[test]
fn a_value_that_is_overridden_need_not_be_valid() {
    let given = ConfigInput::new().file("listen = \"nowhere\"\n").env("URR_LISTEN", "127.0.0.1:1");
    assert_eq!(given.config().listen.port(), 1);
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    for (text, line, meant) in [
        ("lisen = \"127.0.0.1:1\"", 1, "`listen`"),
        ("\n\n[sale]\nhold_sec = 60", 4, "`sale.hold_secs`"),
        ("hold_secs = 60", 1, "`sale.hold_secs`"),
        ("storage = { knd = \"sqlite\" }", 1, "`storage.kind`"),
        ("[remote]\ncatalogue = \"http://a\"", 2, "`remote.catalog`"),
    ] {
        let problem = ConfigInput::new().file(text).problem();
        assert!(problem.starts_with(&format!("urr.toml:{line}: ")), "{problem}");
        assert!(problem.ends_with(&format!("did you mean {meant}?")), "{problem}");
    }
    let problem = ConfigInput::new().file("[xylophone]\nquartz = 1").problem();
    assert!(problem.ends_with("docs/config.md lists them all"), "{problem}");
}

#[test]
fn unknown_urr_variables_are_refused_except_those_of_tests() {
    let problem = ConfigInput::new().env("URR_SALE_HOLD_SEC", "60").problem();
    assert_eq!(problem, "URR_SALE_HOLD_SEC: no setting has this name; did you mean `URR_SALE_HOLD_SECS`?");
    ConfigInput::new().env("URR_TEST_POSTGRES", "x").env("HOME", "/").env("URR_LISTEN", "").config();
}

#[test]
fn a_key_that_is_not_secret_has_no_file_variant() {
    let problem = ConfigInput::new().env("URR_LISTEN_FILE", "/x").problem();
    assert!(problem.contains("did you mean `URR_LISTEN`?"), "{problem}");
}

#[test]
fn invalid_values_are_reported_with_source_and_expected_format() {
    for (text, wanted) in [
        (
            "[sale]\nhold_secs = 4",
            "urr.toml:2: `sale.hold_secs = 4` is out of range; it must be between 5 and 3600",
        ),
        (
            "[sale]\nhold_secs = 1.5",
            "urr.toml:2: `sale.hold_secs = 1.5` is not a whole number between 5 and 3600",
        ),
        (
            "profile = \"prod\"",
            "urr.toml:1: `profile = prod` is none of local, production; did you mean `production`?",
        ),
        ("demo = \"yes\"", "urr.toml:1: `demo = yes` is neither true nor false"),
        (
            "listen = 3001",
            "urr.toml:1: `listen = 3001` is not an address with a port, such as 127.0.0.1:3001",
        ),
        ("demo = 2024-01-01", "urr.toml:1: `demo` is neither text, a number, true, false nor a list"),
    ] {
        assert_eq!(ConfigInput::new().file(text).problem(), wanted);
    }
    let said = ConfigInput::new().file("roles = [\"tickets\", \"catalgo\"]").problem();
    assert!(
        said.starts_with("urr.toml:1: `roles = tickets,catalgo` `catalgo` is none of auth, catalog,"),
        "{said}"
    );
    assert!(said.ends_with("; did you mean `catalog`?"), "{said}");
}

#[test]
fn a_syntax_error_names_the_line_and_a_missing_file_its_path() {
    let problem = ConfigInput::new().file("demo = true\nlisten = \n").problem();
    assert!(problem.starts_with("urr.toml:2: "), "{problem}");
    let mut given = ConfigInput::new();
    given.input.file = Some("elsewhere.toml".into());
    assert!(given.problem().starts_with("elsewhere.toml: the configuration file cannot be read: "));
    let given = ConfigInput::new().env("URR_CONFIG", "other.toml");
    fs::write(given.dir.path().join("other.toml"), "demo = false").unwrap();
    assert!(!given.config().demo);
}

#[test]
fn all_problems_are_reported_at_once() {
    let problems = ConfigInput::new()
        .file("lisen = 1\n[sale]\nhold_secs = 0\n[storage]\nkind = \"postgres\"\n")
        .env("URR_BUS_KIND", "kafka")
        .problems();
    assert_eq!(problems.len(), 4, "{problems:#?}");
}

#[test]
fn unknown_url_schemes_are_refused_without_printing_the_password() {
    let problem =
        ConfigInput::new().file("storage = { kind = \"postgres\", url = \"mysql://urr:hunter2@db/urr\" }");
    let problem = problem.problems().join("\n");
    assert!(problem.contains("unknown scheme `mysql`") && problem.contains("urr:***@db"), "{problem}");
    assert!(!problem.contains("hunter2"));
    let problem = ConfigInput::new().env("URR_REDIS_URLS", "memcached://:hunter2@cache").problem();
    assert!(problem.starts_with("URR_REDIS_URLS: ") && problem.contains("unknown scheme `memcached`"));
    assert!(!problem.contains("hunter2"), "{problem}");
}

#[test]
fn postgres_kafka_and_redis_are_configured() {
    let config = ConfigInput::new()
        .file("storage = { kind = \"postgres\", url = \"postgres://urr@db/urr\", pool = 4 }")
        .env("URR_BUS_KIND", "kafka")
        .env("URR_BUS_BROKERS", "a:9092, b:9092")
        .env("URR_BUS_ALLOW_INSECURE", "true")
        .env("URR_REDIS_URLS", "redis://127.0.0.1:6379")
        .config();
    let postgres = config.storage.postgres().unwrap();
    assert_eq!((postgres.url.as_str(), postgres.pool_size), ("postgres://urr@db/urr", 4));
    assert!(postgres.admin_url.is_none());
    assert_eq!((config.bus.kind, config.bus.replication), (BusKind::Kafka, 3));
    assert_eq!(config.bus.broker_list(), "a:9092,b:9092");
    assert_eq!(config.redis.config().unwrap().unwrap().deadline, Duration::from_millis(100));
    assert!(!config.demo, "a shared database is not filled with demo data");
}

#[test]
fn settings_of_the_other_backend_are_refused() {
    let problem = ConfigInput::new().env("URR_STORAGE_URL", "postgres://db/urr").problem();
    assert!(problem.starts_with("URR_STORAGE_URL: ") && problem.contains("storage.kind = postgres"));
    let problem = ConfigInput::new().env("URR_BUS_BROKERS", "a:9092").problem();
    assert!(problem.contains("bus.kind = kafka"));
    let problem = ConfigInput::new().env("URR_REDIS_URLS", "redis://a,redis://b").problem();
    assert!(problem.contains("redis.cluster = true"));
    let problem = ConfigInput::new().env("URR_INTERNAL_LISTEN", "127.0.0.1:3001").problem();
    assert!(problem.contains("port of its own"));
}

#[test]
fn a_called_role_must_run_here_or_be_remote() {
    let given = ConfigInput::new()
        .env("URR_ROLES", "gateway,tickets")
        .env("URR_BUS_KIND", "kafka")
        .env("URR_BUS_BROKERS", "localhost:9092");
    let problem = given.problem();
    assert!(
        problem.contains("`remote.catalog` is not set") && problem.contains("URR_REMOTE_CATALOG"),
        "{problem}"
    );
    let config = given.env("URR_REMOTE_CATALOG", "https://b:3002/").config();
    assert_eq!(config.remote.of(&crate::domains::catalog::ROLE).unwrap().expose(), "https://b:3002");
    assert!(config.talks_to_others());
    let config = ConfigInput::new().env("URR_REMOTE_CATALOG", "http://b:3002").config();
    assert!(!config.talks_to_others(), "a role that runs here is not called remotely");
}

#[test]
fn domains_in_different_processes_need_kafka() {
    let given = ConfigInput::new().env("URR_ROLES", "catalog");
    let problem = given.problem();
    assert!(problem.starts_with("URR_ROLES: ") && problem.contains("set bus.kind = kafka"), "{problem}");
    given.env("URR_BUS_KIND", "kafka").env("URR_BUS_BROKERS", "localhost:9092").config();
    ConfigInput::new().env("URR_ROLES", "catalog,tickets").config();
    ConfigInput::new().env("URR_ROLES", "auth").config();
}

#[test]
fn a_secret_can_be_read_from_a_file() {
    let given = ConfigInput::new();
    let path = given.dir.path().join("key");
    fs::write(&path, format!("{SECRET}\n")).unwrap();
    let given = given.env("URR_SECURITY_SECRET_FILE", path.to_str().unwrap());
    assert_eq!(key(&given.config()), key(&ConfigInput::new().env("URR_SECURITY_SECRET", SECRET).config()));
    let given = given.env("URR_SECURITY_SECRET", SECRET);
    assert!(given.problem().contains("both as itself and as a file"));
    let given = ConfigInput::new().file("security.secret_file = \"nowhere\"");
    assert!(given.problem().starts_with("urr.toml:1: the file nowhere for `security.secret` cannot be read"));
}

#[test]
fn one_secret_under_two_names_is_refused() {
    let given = ConfigInput::new().env("INTERNAL_API_TOKEN", SECRET).env("URR_INTERNAL_TOKEN", SECRET);
    assert_eq!(
        given.problem(),
        "URR_INTERNAL_TOKEN: `internal.token` was already set by INTERNAL_API_TOKEN; keep one"
    );
}

#[test]
fn the_first_admin_needs_both_address_and_password() {
    assert!(
        ConfigInput::new().env("URR_ADMIN_EMAIL", "a@b.kr").problem().contains("`admin.password` is not set")
    );
    let given =
        ConfigInput::new().env("URR_ADMIN_EMAIL", "a@b.kr").env("URR_ADMIN_PASSWORD", "correct horse");
    assert_eq!(given.config().admin.email.unwrap().0, "a@b.kr");
    let given = given.env("URR_ADMIN_EMAIL_FILE", "x");
    assert!(
        given.problems().join(" ").contains("no setting has this name"),
        "an address is not a secret, so it has no file variant"
    );
}

#[test]
fn cookies_are_secure_except_on_plain_loopback() {
    assert!(!ConfigInput::new().config().secure_cookies());
    assert!(ConfigInput::new().env("URR_LISTEN", "0.0.0.0:3001").config().secure_cookies());
    assert!(ConfigInput::new().env("URR_AUTH_COOKIE_SECURE", "true").config().secure_cookies());
    assert!(ConfigInput::new().env("URR_PUBLIC_URL", "https://tickets.example").config().secure_cookies());
    assert!(!ConfigInput::new().env("URR_PUBLIC_URL", "http://localhost:3001").config().secure_cookies());
}

#[test]
fn smtp_needs_server_and_sender_and_tls_beyond_loopback() {
    let given = ConfigInput::new().env("URR_MAIL_KIND", "smtp");
    assert_eq!(given.problems().len(), 2, "{:?}", given.problems());
    let given = given.env("URR_MAIL_SMTP_SERVER", "mail:587").env("URR_MAIL_FROM", "URR <a@b.kr>");
    let smtp = given.config().mail.smtp().unwrap();
    assert_eq!((smtp.host.as_str(), smtp.port), ("mail", 587));
    let problem = given.env("URR_MAIL_SMTP_SECURITY", "plain").problem();
    assert!(problem.contains("another machine"), "{problem}");
    let problem = ConfigInput::new().env("URR_MAIL_SMTP_SERVER", "mail:587").problem();
    assert!(problem.contains("mail.kind = smtp"), "{problem}");
}

#[test]
fn personal_data_is_encrypted_with_the_first_key() {
    let key = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";
    let given = |keys: String| ConfigInput::new().env("URR_AUTH_PII_KEYS", &keys);
    let keys = given(format!("new:{key},old:{key}")).config().auth.sealing_keys().unwrap().unwrap();
    assert!(format!("{keys:?}").contains("\"new\""), "{keys:?}");
    let problem = given(format!("a:{key},a:{key}")).problem();
    assert!(problem.contains("two keys of one id") && !problem.contains(key), "{problem}");
    assert!(given(format!("a b:{key}")).problem().contains("letters"));
    let moving = given(format!("new:{key}")).env("URR_AUTH_PII_SEAL_PLAIN", "true").config();
    assert!(moving.auth.pii_seal_plain && !given(format!("new:{key}")).config().auth.pii_seal_plain);
    let keyless = ConfigInput::new().env("URR_AUTH_PII_SEAL_PLAIN", "true").problem();
    assert!(keyless.contains("auth.pii_keys"), "{keyless}");
}

#[test]
fn the_effective_configuration_shows_sources_and_hides_secrets() {
    let given = ConfigInput::new()
        .file("[storage]\nkind = \"postgres\"\nurl = \"postgres://urr:hunter2@db/urr\"\n")
        .env("URR_SECURITY_SECRET", SECRET)
        .flag("--listen", "listen", "127.0.0.1:9");
    let (mut values, config) = load(&given.input).unwrap();
    let page = effective(&values);
    assert!(page.contains("listen = \"127.0.0.1:9\"  # --listen\n"), "{page}");
    assert!(page.contains("url = \"postgres://urr:***@db/urr\"  # urr.toml:3\n"), "{page}");
    assert!(page.contains("secret = \"(redacted)\"  # URR_SECURITY_SECRET\n"), "{page}");
    assert!(page.contains("hold_secs = 300\n"), "{page}");
    assert!(page.contains("# token is not set; generated on first start\n"), "{page}");
    assert!(toml::from_str::<toml::Table>(&page).is_ok(), "{page}");
    values.set_generated(
        Internal::info("internal.token"),
        SECRET.to_owned(),
        "./urr-data/secrets.toml".into(),
    );
    let page = effective(&values);
    assert!(page.contains("token = \"(redacted)\"  # generated, in ./urr-data/secrets.toml\n"), "{page}");
    for page in [page, format!("{config:?} {values:?}")] {
        assert!(!page.contains("hunter2") && !page.contains(SECRET), "{page}");
    }
}

#[test]
fn a_generated_secret_does_not_replace_a_configured_one() {
    let given = ConfigInput::new().env("URR_SECURITY_SECRET", SECRET);
    let (mut values, _) = load(&given.input).unwrap();
    values.set_generated(
        Security::info("security.secret"),
        "another correct horse battery staple".to_owned(),
        "secrets.toml".into(),
    );
    assert_eq!(key(&Config::resolve(&values).unwrap()), key(&given.config()));
}

/// The id of the key that signs access tokens.
fn key(config: &Config) -> String {
    urr_passes::access::key(&config.security.secret.clone().unwrap().0).id().to_owned()
}

#[test]
fn a_weak_signing_secret_is_refused_without_printing_it() {
    for weak in ["hunter2", "hunhunhunhunhunhunhunhunhunhunhunhunhun"] {
        let problem = ConfigInput::new().env("URR_SECURITY_SECRET", weak).problem();
        assert!(problem.contains("is too weak") && problem.contains("openssl rand"), "{problem}");
        assert!(!problem.contains(weak));
    }
}
