//! Commands that end by themselves.

use crate::process::WorkDir;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn help_lists_every_command_and_version_prints_it() {
    let work_dir = WorkDir::new();
    let help = work_dir.run(&["--help"]).ok();
    for command in
        ["serve", "migrate", "check-config", "doctor", "token", "admin", "outbox", "mails", "version"]
    {
        assert!(help.contains(command), "{command}");
    }
    assert!(work_dir.run(&["version"]).ok().starts_with("urr "));
}

#[test]
fn check_config_prints_the_effective_configuration_with_sources() {
    let work_dir = WorkDir::new();
    work_dir.write("urr.toml", "[sale]\nhold_secs = 60\n");
    let said = work_dir
        .command(&["check-config", "--listen", "127.0.0.1:9"])
        .env("URR_SECURITY_SECRET", SECRET)
        .output();
    let out = String::from_utf8(said.unwrap().stdout).unwrap();
    assert!(out.contains("hold_secs = 60  # urr.toml:2"), "{out}");
    assert!(out.contains("listen = \"127.0.0.1:9\"  # --listen"), "{out}");
    assert!(out.contains("secret = \"(redacted)\"  # URR_SECURITY_SECRET"), "{out}");
    assert!(!out.contains(SECRET));
    assert!(!work_dir.path().join("urr-data").exists(), "check-config creates no files");
}

#[test]
fn check_config_prints_one_line_per_problem() {
    let work_dir = WorkDir::new();
    work_dir.write("urr.toml", "lisen = 1\n[sale]\nhold_secs = 0\n");
    let err = work_dir.run(&["check-config", "--set", "profile=production"]).failed();
    assert_eq!(err.lines().count(), 5, "{err}");
    assert!(err.contains("urr.toml:1: `lisen` is no setting; did you mean `listen`?"), "{err}");
    assert!(
        err.contains("`security.secret` is not set") && err.contains("`auth.index_key` is not set"),
        "{err}"
    );
}

#[test]
fn check_config_reports_what_the_drivers_refuse() {
    let work_dir = WorkDir::new();
    let said = work_dir.run(&[
        "check-config",
        "--set",
        "redis.urls=redis://10.255.255.1:6379",
        "--set",
        "log.filter=urr=louder",
        "--set",
        "storage.kind=postgres",
        "--set",
        "storage.url=postgres://urr:hunter2@127.0.0.1/urr?sslmode=maybe",
    ]);
    assert_eq!(said.err.lines().count(), 3, "{said:#?}");
    for what in ["redis.allow_insecure", "log filter", "PostgreSQL URL"] {
        assert!(said.err.contains(what), "{what}: {said:#?}");
    }
    assert!(!said.err.contains("hunter2") && !said.out.contains("hunter2"), "{said:#?}");
    said.failed();
}

#[test]
fn check_config_accepts_kafka_with_credentials_and_refuses_tls() {
    let work_dir = WorkDir::new();
    let check = |options: &str| {
        let options = format!("bus.options={options}");
        let set = ["bus.kind=kafka", "bus.brokers=kafka-1:9092", &options];
        work_dir.run(&[&["check-config"][..], &set.map(|one| ["--set", one]).concat()].concat())
    };
    let credentials = "sasl.mechanism=PLAIN,sasl.username=urr,sasl.password=hunter2";
    assert!(!check(&format!("security.protocol=SASL_PLAINTEXT,{credentials}")).ok().contains("hunter2"));
    let err = check(&format!("security.protocol=SASL_SSL,{credentials}")).failed();
    assert!(err.lines().count() == 1 && err.contains("TLS to Kafka is not built in"), "{err}");
    assert!(!err.contains("hunter2"), "{err}");
}

#[test]
fn production_refuses_to_serve_without_secrets_and_creates_no_files() {
    let work_dir = WorkDir::new();
    let set = ["--set", "profile=production", "--set", "internal.listen=127.0.0.1:0"];
    let err = work_dir.run(&[&["serve"][..], &set].concat()).failed();
    assert!(
        err.contains("`security.secret` is not set") && err.contains("`internal.token` is not set"),
        "{err}"
    );
    assert!(!work_dir.path().join("urr-data").exists());
}

#[test]
fn a_token_needs_a_key() {
    let work_dir = WorkDir::new();
    let user = "0197f3a0-0000-7000-8000-000000000001";
    let err = work_dir.run(&["token", "--user", user]).failed();
    assert!(err.contains("security.secret") && err.contains("urr serve"), "{err}");
    let said =
        work_dir.command(&["token", "--user", user]).env("URR_SECURITY_SECRET", SECRET).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap().trim().split('.').count(), 3);
    assert!(work_dir.run(&["token", "--user", "me"]).err.contains("me"));
    let other_dir = ["token", "--user", user, "--roles", "gateway"];
    let said = work_dir.command(&other_dir).env("URR_SECURITY_SECRET", SECRET).output().unwrap();
    assert_eq!(
        String::from_utf8(said.stdout).unwrap().trim().split('.').count(),
        3,
        "the roles do not matter"
    );
}

#[test]
fn migrate_creates_the_files_and_can_be_repeated() {
    let work_dir = WorkDir::new();
    work_dir.run(&["migrate"]).ok();
    assert!(work_dir.path().join("urr-data").is_dir());
    let again = work_dir.run(&["migrate"]).ok();
    assert!(again.contains("tickets") && again.contains("catalog"), "{again}");
}

#[test]
fn doctor_passes_on_a_new_installation() {
    let work_dir = WorkDir::new();
    work_dir.run(&["migrate"]).ok();
    let out = work_dir.run(&["doctor"]).ok();
    assert!(out.lines().all(|line| line.starts_with("ok")), "{out}");
    for what in ["data directory", "tickets database", "catalog database", "clock", "open files"] {
        assert!(out.contains(what), "{what} is not checked: {out}");
    }
}

#[test]
fn doctor_creates_no_files() {
    let work_dir = WorkDir::new();
    let out = work_dir.run(&["doctor"]).ok();
    assert!(out.contains("not there yet"), "{out}");
    assert!(!work_dir.path().join("urr-data").exists());
}

#[test]
fn doctor_reports_every_unreachable_store_and_role() {
    let work_dir = WorkDir::new();
    // Port 1 of loopback refuses connections at once.
    let said = work_dir.run(&[
        "doctor",
        "--set",
        "storage.kind=postgres",
        "--set",
        "storage.url=postgres://urr:hunter2@127.0.0.1:1/urr",
        "--set",
        "redis.urls=redis://127.0.0.1:1",
        "--set",
        "bus.kind=kafka",
        "--set",
        "bus.brokers=127.0.0.1:1",
        "--roles",
        "gateway,tickets",
        "--set",
        "remote.catalog=http://127.0.0.1:1",
        "--set",
        "upstream.auth=http://127.0.0.1:1",
    ]);
    assert_eq!(said.code, Some(1), "{said:#?}");
    for what in ["database", "Redis", "Kafka", "catalog at http://127.0.0.1:1", "auth behind the gateway"] {
        let line =
            said.out.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {said:#?}"));
        assert!(line.starts_with("FAIL"), "{line}");
    }
    assert!(!said.out.contains("hunter2") && !said.err.contains("hunter2"), "{said:#?}");
}

#[test]
fn the_outbox_of_a_new_installation_is_empty() {
    let work_dir = WorkDir::new();
    work_dir.run(&["migrate"]).ok();
    let out = work_dir.run(&["outbox", "status"]).ok();
    assert!(out.contains("tickets") && out.contains("0 waiting"), "{out}");
    work_dir.run(&["outbox", "dead"]).ok();
    work_dir.run(&["outbox", "republish"]).ok();
}

#[test]
fn a_new_installation_has_no_mails_and_an_unknown_one_is_not_retried() {
    let work_dir = WorkDir::new();
    for command in [["mails", "status"], ["outbox", "status"]] {
        let said = work_dir.run(&command).failed();
        assert!(said.contains("run `urr migrate`"), "{said}");
    }
    work_dir.run(&["migrate"]).ok();
    let out = work_dir.run(&["mails", "status"]).ok();
    assert!(out.contains("auth: 0 waiting; 0 failed"), "{out}");
    assert!(work_dir.run(&["mails", "list"]).ok().contains("no waiting mails"));
    assert!(
        work_dir.run(&["mails", "list", "--failed", "--domain", "auth"]).ok().contains("no failed mails")
    );
    assert!(work_dir.run(&["mails", "retry"]).ok().contains("0 queued again"));
    let unknown = "00000000-0000-7000-8000-000000000001";
    let said = work_dir.run(&["mails", "retry", unknown]).failed();
    assert!(said.contains("is not among the failed mails"), "{said}");
}

#[test]
fn config_docs_lists_the_settings() {
    let out = WorkDir::new().run(&["config", "docs"]).ok();
    assert!(out.contains("URR_SALE_HOLD_SECS"));
}
