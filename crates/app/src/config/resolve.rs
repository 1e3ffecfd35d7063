//! Turns settings into a configuration whose parts fit together, or names every part that does not.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use urr_auth::{PiiKeys, PortOneConfig};
use urr_contracts::auth::Sensitive;
use urr_mail::{SmtpConfig, SmtpSecurity};

use super::{
    Auth, Bus, Config, FirstAdmin, Http, Identity, Log, Problem, Profile, Redis, Remote, Sale, Storage,
    Values,
    addresses::{Email, HostPort},
    choices::{IdentityKind, MailKind, SecondFactor, SmtpProtection, StorageKind},
    door::door,
    queue::queue,
    settings::{self as s, Info},
};
use crate::{config::Choice as _, roles::Role};

impl Config {
    /// Turns settings into a configuration and checks what must agree.
    pub(crate) fn resolve(values: &Values) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems { values, found: Vec::new() };
        let profile = values.get(&s::PROFILE);
        let storage = problems.storage();
        let config = Self {
            profile,
            listen: values.get(&s::LISTEN),
            public_url: values.get(&s::PUBLIC_URL).map(|url| url.expose().to_owned()),
            data_dir: values.get(&s::DATA_DIR),
            roles: values.get(&s::ROLES),
            demo: values.get(&s::DEMO)
                && profile == Profile::Local
                && matches!(storage, Some(Storage::Sqlite { .. })),
            clock_speed: values.get(&s::CLOCK_SPEED).count(),
            // An unresolved part is reported below, so what stands in its place is never seen.
            storage: storage.unwrap_or(Storage::Sqlite { group_commit: true }),
            bus: problems.bus(),
            redis: problems.redis(),
            remote: Remote {
                auth: values.get(&s::REMOTE_AUTH),
                catalog: values.get(&s::REMOTE_CATALOG),
                queue: values.get(&s::REMOTE_QUEUE),
                vwr: values.get(&s::REMOTE_VWR),
            },
            internal_listen: values.get(&s::INTERNAL_LISTEN),
            internal_token: values.get(&s::INTERNAL_TOKEN),
            http: http(values),
            door: door(values),
            log: Log {
                format: values.get(&s::LOG_FORMAT),
                filter: values.get(&s::LOG_FILTER),
                access_sample: values.get(&s::LOG_ACCESS_SAMPLE).count(),
                otlp: values.get(&s::LOG_OTLP_URL),
                otlp_percent: values.get(&s::LOG_OTLP_PERCENT).count(),
            },
            sale: Sale { hold: Duration::from_secs(values.get(&s::SALE_HOLD_SECS).get()) },
            queue: queue(values),
            counting: problems.counting(),
            notices: problems.notices(),
            smtp: problems.smtp(),
            auth: problems.auth(),
            admin: problems.admin(),
            secret: values.get(&s::SECURITY_SECRET),
            former_secrets: values.get(&s::SECURITY_FORMER_SECRETS).0,
        };
        problems.roles(&config);
        problems.listeners(&config);
        problems.clock(&config);
        problems.production(&config);
        if problems.found.is_empty() { Ok(config) } else { Err(problems.found) }
    }
}

fn http(values: &Values) -> Http {
    Http {
        body_bytes: values.get(&s::HTTP_BODY_BYTES).size(),
        auth_body_bytes: values.get(&s::HTTP_AUTH_BODY_BYTES).size(),
        header_bytes: values.get(&s::HTTP_HEADER_BYTES).size(),
        headers: values.get(&s::HTTP_HEADERS).size(),
        request_time: Duration::from_secs(values.get(&s::HTTP_REQUEST_SECS).get()),
        header_read_time: Duration::from_secs(values.get(&s::HTTP_HEADER_READ_SECS).get()),
        keep_alive_time: Duration::from_secs(values.get(&s::HTTP_KEEP_ALIVE_SECS).get()),
        write_stall_time: Duration::from_secs(values.get(&s::HTTP_WRITE_STALL_SECS).get()),
        notice: Duration::from_secs(values.get(&s::HTTP_NOTICE_SECS).get()),
        max_in_flight: values.get(&s::HTTP_MAX_IN_FLIGHT).size(),
        max_connections: values.get(&s::HTTP_MAX_CONNECTIONS).size(),
        max_connections_per_address: values.get(&s::HTTP_MAX_CONNECTIONS_PER_ADDRESS).size(),
        hsts: values.get(&s::HTTP_HSTS),
    }
}

pub(super) fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Settings that are each fine but do not fit together.
pub(super) struct Problems<'v> {
    pub(super) values: &'v Values,
    pub(super) found: Vec<Problem>,
}

impl Problems<'_> {
    /// `info` is set although `why` makes it meaningless.
    pub(super) fn stray(&mut self, info: &Info, why: &str) {
        if self.values.is_set(info) {
            let source = self.values.source(info);
            self.found.push(Problem(format!("{source}: `{}` {why}", info.key)));
        }
    }

    /// `info` is not set although `why` makes it necessary.
    pub(super) fn missing(&mut self, info: &Info, why: &str) {
        let file = if info.secret { format!(" or {}_FILE", info.env()) } else { String::new() };
        let fix = format!("set it in the file or as {}{file}", info.env());
        self.found.push(Problem(format!("`{}` is not set, but {why}; {fix}", info.key)));
    }

    fn storage(&mut self) -> Option<Storage> {
        match self.values.get(&s::STORAGE_KIND) {
            StorageKind::Sqlite => {
                for info in [&s::STORAGE_URL.info, &s::STORAGE_ADMIN_URL.info, &s::STORAGE_CA_FILE.info] {
                    self.stray(info, "is only for storage.kind = postgres; set that too, or remove it");
                }
                Some(Storage::Sqlite { group_commit: self.values.get(&s::STORAGE_GROUP_COMMIT) })
            }
            StorageKind::Postgres => {
                let Some(url) = self.values.get(&s::STORAGE_URL) else {
                    self.missing(&s::STORAGE_URL.info, "storage.kind = postgres needs it");
                    return None;
                };
                Some(Storage::Postgres {
                    url,
                    admin_url: self.values.get(&s::STORAGE_ADMIN_URL),
                    ca_file: self.values.get(&s::STORAGE_CA_FILE),
                    pool: self.values.get(&s::STORAGE_POOL).size(),
                })
            }
        }
    }

    fn redis(&mut self) -> Option<Redis> {
        let urls = self.values.get(&s::REDIS_URLS).0;
        let cluster = self.values.get(&s::REDIS_CLUSTER);
        if urls.is_empty() {
            if cluster {
                self.missing(&s::REDIS_URLS.info, "redis.cluster = true needs it");
            }
            return None;
        }
        if urls.len() > 1 && !cluster {
            self.stray(&s::REDIS_URLS.info, "names several nodes; set redis.cluster = true, or keep one");
        }
        let deadline = Duration::from_millis(self.values.get(&s::REDIS_DEADLINE_MS).get());
        let ca_file = self.values.get(&s::REDIS_CA_FILE);
        Some(Redis {
            urls,
            cluster,
            ca_file,
            allow_insecure: self.values.get(&s::REDIS_ALLOW_INSECURE),
            deadline,
        })
    }

    fn auth(&mut self) -> Auth {
        let days = |number: u64| Duration::from_hours(24 * number);
        let values = self.values;
        let over_tls = values.get(&s::PUBLIC_URL).is_some_and(|url| url.expose().starts_with("https://"));
        let local = values.get(&s::PROFILE) == Profile::Local && values.get(&s::LISTEN).ip().is_loopback();
        Auth {
            cookie_secure: values.get(&s::AUTH_COOKIE_SECURE).unwrap_or(!local || over_tls),
            index_key: values.get(&s::AUTH_INDEX_KEY),
            pii_keys: self.pii_keys(),
            seals_plain: values.get(&s::AUTH_PII_SEAL_PLAIN),
            admin_needs_second_factor: match values.get(&s::AUTH_ADMIN_SECOND_FACTOR) {
                Some(wanted) => wanted == SecondFactor::Required,
                None => values.get(&s::PROFILE) == Profile::Production,
            },
            identity: self.identity(),
            terms_version: values.get(&s::AUTH_TERMS_VERSION),
            erase_after: days(values.get(&s::AUTH_ERASE_AFTER_DAYS).get()),
            dormant_after: days(values.get(&s::AUTH_DORMANT_AFTER_DAYS).get()),
            history_kept: days(values.get(&s::AUTH_HISTORY_DAYS).get()),
            social: self.social(),
        }
    }

    fn smtp(&mut self) -> Option<SmtpConfig> {
        let values = self.values;
        if values.get(&s::MAIL_KIND) == MailKind::File {
            let stray = [
                &s::MAIL_FROM.info,
                &s::MAIL_SMTP_SERVER.info,
                &s::MAIL_SMTP_SECURITY.info,
                &s::MAIL_SMTP_USER.info,
                &s::MAIL_SMTP_PASSWORD.info,
            ];
            for info in stray {
                self.stray(info, "is only for mail.kind = smtp; set that too, or remove it");
            }
            return None;
        }
        let (server, from) = (values.get(&s::MAIL_SMTP_SERVER), values.get(&s::MAIL_FROM));
        for (info, missing) in
            [(&s::MAIL_SMTP_SERVER.info, server.is_none()), (&s::MAIL_FROM.info, from.is_none())]
        {
            if missing {
                self.missing(info, "mail.kind = smtp needs it");
            }
        }
        let (user, password) = (values.get(&s::MAIL_SMTP_USER), values.get(&s::MAIL_SMTP_PASSWORD));
        match (&user, &password) {
            (Some(_), None) => self.missing(&s::MAIL_SMTP_PASSWORD.info, "mail.smtp_user is"),
            (None, Some(_)) => self.missing(&s::MAIL_SMTP_USER.info, "mail.smtp_password is"),
            _ => {}
        }
        let HostPort(server) = server?;
        let (host, port) = server.rsplit_once(':').expect("a server is host:port");
        let security = match values.get(&s::MAIL_SMTP_SECURITY) {
            SmtpProtection::Tls => SmtpSecurity::Tls,
            SmtpProtection::StartTls => SmtpSecurity::StartTls,
            SmtpProtection::Plain => SmtpSecurity::Plain,
        };
        if security == SmtpSecurity::Plain && !is_this_machine(host) {
            let why = "= plain, but the server is on another machine; choose tls or starttls";
            self.stray(&s::MAIL_SMTP_SECURITY.info, why);
        }
        Some(SmtpConfig {
            host: host.to_owned(),
            port: port.parse().expect("a server has a port"),
            security,
            credentials: user.zip(password.map(|password| password.expose().to_owned())),
            from: from?,
            timeout: SmtpConfig::TIMEOUT,
        })
    }

    fn identity(&mut self) -> Identity {
        let (values, production) = (self.values, self.values.get(&s::PROFILE) == Profile::Production);
        let left_out = if production { IdentityKind::Off } else { IdentityKind::Sandbox };
        let kind = values.get(&s::AUTH_IDENTITY).unwrap_or(left_out);
        let (store_id, channel_key) =
            (values.get(&s::AUTH_PORTONE_STORE_ID), values.get(&s::AUTH_PORTONE_CHANNEL_KEY));
        let secret = values.get(&s::AUTH_PORTONE_SECRET);
        let parts = [
            (&s::AUTH_PORTONE_SECRET.info, secret.is_some()),
            (&s::AUTH_PORTONE_STORE_ID.info, store_id.is_some()),
            (&s::AUTH_PORTONE_CHANNEL_KEY.info, channel_key.is_some()),
        ];
        for (info, is_there) in parts {
            match (kind, is_there) {
                (IdentityKind::Portone, false) => self.missing(info, "auth.identity = portone needs it"),
                (IdentityKind::Off | IdentityKind::Sandbox, true) => {
                    self.stray(info, "is only for auth.identity = portone; set that too, or remove it");
                }
                _ => {}
            }
        }
        match kind {
            IdentityKind::Sandbox if production && !values.get(&s::AUTH_IDENTITY_ALLOW_SANDBOX) => {
                let why = "= sandbox, but profile = production takes no made-up persons for real ones; choose \
                           portone or off, or set auth.identity_allow_sandbox = true";
                self.stray(&s::AUTH_IDENTITY.info, why);
                Identity::Off
            }
            IdentityKind::Sandbox => Identity::Sandbox,
            IdentityKind::Off => Identity::Off,
            IdentityKind::Portone => match (secret, store_id, channel_key) {
                (Some(secret), Some(store_id), Some(channel_key)) => Identity::Portone(PortOneConfig {
                    base_url: values.get(&s::AUTH_PORTONE_URL).expose().to_owned(),
                    secret: Sensitive::new(secret.expose()),
                    store_id,
                    channel_key,
                }),
                _ => Identity::Off,
            },
        }
    }

    fn pii_keys(&mut self) -> Option<PiiKeys> {
        let keys = self.values.get(&s::AUTH_PII_KEYS).0;
        if keys.is_empty() {
            let why = "is only for auth.pii_keys, which seal; set them too, or remove it";
            self.stray(&s::AUTH_PII_SEAL_PLAIN.info, why);
        }
        let (current, count) = (keys.first()?.id.clone(), keys.len());
        let keys: BTreeMap<_, _> = keys.into_iter().map(|key| (key.id, key.key)).collect();
        if keys.len() < count {
            self.stray(&s::AUTH_PII_KEYS.info, "has two keys of one id");
        }
        match PiiKeys::new(current, keys) {
            Ok(keys) => Some(keys),
            Err(bad) => {
                self.stray(&s::AUTH_PII_KEYS.info, &format!("cannot be used: {bad}"));
                None
            }
        }
    }

    /// The first admin needs a name and a password.
    fn admin(&mut self) -> Option<FirstAdmin> {
        match (self.values.get(&s::ADMIN_EMAIL), self.values.get(&s::ADMIN_PASSWORD)) {
            (Some(Email(email)), Some(password)) => return Some(FirstAdmin { email, password }),
            (Some(_), None) => self.missing(&s::ADMIN_PASSWORD.info, "admin.email is"),
            (None, Some(_)) => self.missing(&s::ADMIN_EMAIL.info, "admin.password is"),
            (None, None) => {}
        }
        None
    }

    /// A role that is called must be here or somewhere, and events must reach whoever waits for them.
    fn roles(&mut self, config: &Config) {
        for role in config.needs_remote().filter(|role| config.remote.of(*role).is_none()) {
            let info = match role {
                Role::Catalog => &s::REMOTE_CATALOG.info,
                Role::Auth => &s::REMOTE_AUTH.info,
                Role::Queue => &s::REMOTE_QUEUE.info,
                Role::Tickets | Role::Vwr | Role::Site | Role::Gateway | Role::Notices => continue,
            };
            let why = format!("roles = {} needs {} and does not run it", config.roles, role.name());
            self.missing(info, &why);
        }
        let works = |role: &Role| Role::SERVING.contains(role) || *role == Role::Notices;
        if !config.roles.iter().any(|role| works(&role)) && config.passes_on().next().is_none() {
            let why = "names nothing that answers and upstream nothing to pass requests on to, so there is nothing to serve; add \
                       auth, catalog, queue, site, tickets or vwr here or there";
            self.stray(&s::ROLES.info, why);
        }
        if matches!(config.bus, Bus::InProcess)
            && config.roles.has(Role::Queue)
            && !config.roles.has(Role::Tickets)
        {
            let why = "has queue without tickets, whose purchases free slots and which bus.kind = in_process cannot tell of; \
                       set bus.kind = kafka, or run both together";
            self.stray(&s::ROLES.info, why);
        }
        let talking = Role::TALKING.iter().filter(|role| config.roles.has(**role)).count();
        if matches!(config.bus, Bus::InProcess) && talking != 0 && talking != Role::TALKING.len() {
            let all = Role::TALKING.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ");
            self.found.push(Problem(format!(
                "{}: roles = {} separates domains whose events bus.kind = in_process cannot carry; set bus.kind = kafka, \
                 or run {all} together",
                self.values.source(&s::ROLES.info),
                config.roles,
            )));
        }
    }

    fn listeners(&mut self, config: &Config) {
        if config.listen.port() != 0 && config.internal_listen == Some(config.listen) {
            self.stray(&s::INTERNAL_LISTEN.info, "is the same as `listen`; give it a port of its own");
        }
    }
}
