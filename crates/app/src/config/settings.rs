//! Every setting there is, in one table. Names of environment variables, refusal of unknown keys, docs/config.md, redaction
//! and the effective configuration that `urr check-config` prints all come from here.

use std::{marker::PhantomData, net::SocketAddr, path::PathBuf};

use urr_gateway::address::Cidr;

use super::{
    addresses::{Email, HostPort, HttpUrl, PostgresUrl, RedisUrl},
    choices::{
        BusKind, CountersKind, ForwardedName, IdentityKind, LogFormat, MailKind, Profile, SecondFactor,
        SmtpProtection, StorageKind,
    },
    door::Origin,
    kinds::{Int, Kind, List, PiiKey, Property, Secret, SigningSecret},
};
use crate::roles::Roles;

/// What is known about a setting whatever its type.
#[derive(Debug)]
pub(crate) struct Info {
    /// The dotted key: `sale.hold_secs` is `hold_secs` in the table `[sale]`.
    pub key: &'static str,
    /// The default as text; empty when the setting may be left out and is.
    pub default: &'static str,
    pub doc: &'static str,
    /// Whether it may come from a file of its own and must not be printed as it is.
    pub secret: bool,
    /// What may stand there.
    pub describe: fn() -> String,
    /// Says what is wrong with a text, if anything is.
    pub check: fn(&str) -> Result<(), String>,
    /// The text as it may be printed.
    pub show: fn(&str) -> String,
}

impl Info {
    /// The environment variable that sets it.
    pub(crate) fn env(&self) -> String {
        format!("{ENV_PREFIX}{}", self.key.replace('.', "_").to_uppercase())
    }
}

/// A setting whose value is a `T`.
#[derive(Debug)]
pub(crate) struct Setting<T: 'static> {
    pub info: Info,
    kind: PhantomData<fn() -> T>,
}

impl<T: Kind> Setting<T> {
    const fn new(key: &'static str, default: &'static str, doc: &'static str) -> Self {
        fn check<T: Kind>(text: &str) -> Result<(), String> {
            T::parse(text).map(|_| ())
        }
        let (secret, describe, show) = (T::SECRET, T::describe, T::show);
        let info = Info { key, default, doc, secret, describe, check: check::<T>, show };
        Self { info, kind: PhantomData }
    }
}

/// What the name of every environment variable of ours starts with.
pub(crate) const ENV_PREFIX: &str = "URR_";

/// Environment variables that speak to the test suite and not to the product.
pub(crate) const ENV_TESTS: &str = "URR_TEST_";

/// The environment variable that names the configuration file, as `--config` does.
pub(crate) const ENV_CONFIG: &str = "URR_CONFIG";

/// Other names for a setting: what existing deployments already export.
pub(crate) const ENV_ALIASES: &[(&str, &str)] =
    &[("INTERNAL_API_TOKEN", "internal.token"), ("GOOGLE_CLIENT_ID", "auth.google.client_id")];

/// What each table of the file is about, in the order of docs/config.md. The empty name is the top of the file.
pub(crate) const SECTIONS: &[(&str, &str)] = &[
    ("", "What this process is and where it lives."),
    ("storage", "The SQL engine that holds the truth about seats and money."),
    ("bus", "How events travel between roles."),
    (
        "redis",
        "Sheds contention before the database. Without it the same work is done in memory, per process.",
    ),
    (
        "remote",
        "Roles that this process calls and that run in others. A role that is needed must be here or there; here wins, so that one file can serve all processes.",
    ),
    (
        "upstream",
        "Roles whose public routes the role `gateway` passes on: the public listeners of their processes, which need the same `security.secret`. Several are taken in turn. A role that runs here is not passed on.",
    ),
    ("internal", "The listener through which other processes reach the roles of this one."),
    (
        "http",
        "Limits of both listeners, each of which bounds memory or time under load, and whom the public one believes.",
    ),
    (
        "limits",
        "How many requests a client may make per minute, a signed-in user by account and anybody else by address, as is whoever signs in or registers. More get 429 with Retry-After. Counted in Redis if there is one, else by each process for itself.",
    ),
    ("log", "Logs and traces."),
    ("sale", "Rules of selling. How many seats a buyer may hold is set per event, in the catalog."),
    (
        "queue",
        "The waiting room in front of one event's seats. Rooms are in Redis if there is one, shared by all processes; else in the memory of the one process that has the role `queue`, with a journal in its database.",
    ),
    ("vwr", "Tier 1 of the waiting room: the line in front of everything. Operators open its rooms."),
    ("aws", "DynamoDB and SQS, for a binary that was built with the feature `aws`: [aws.md](aws.md)."),
    ("mail", "How mails of every domain are sent: [operations.md](operations.md#mails)."),
    ("auth", "Accounts: cookies, personal data. Only for processes with the role `auth`."),
    ("security", "Keys."),
    (
        "admin",
        "The first administrator, made by the first start that finds none. Without both, the first start of the `local` profile on SQLite makes one and prints a generated password once; elsewhere `urr admin create` does.",
    ),
];

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident($key:literal): $kind:ty = $default:literal;)*) => {
        $($(#[doc = $doc])+ pub(crate) static $name: Setting<$kind> = Setting::new($key, $default, concat!($($doc),+));)*

        /// Every setting, in the order of docs/config.md.
        pub(crate) static SETTINGS: &[&Info] = &[$(&$name.info),*];
    };
}

settings! {
    /// `production` refuses to start without configured secrets and never seeds demo data.
    PROFILE("profile"): Profile = "local";
    /// Where the public API listens. Port 0 picks a free one, which the first lines of output name.
    LISTEN("listen"): SocketAddr = "127.0.0.1:3001";
    /// Where people reach the site, for links in mails, such as `https://urr.example`. Left out, it is `http://` and `listen`.
    PUBLIC_URL("public_url"): Option<HttpUrl> = "";
    /// Where SQLite files and generated secrets are kept. One process at a time may use it with SQLite.
    DATA_DIR("data_dir"): PathBuf = "./urr-data";
    /// The parts of the product that this process runs; it serves the public API of each. `gateway` also passes on what `upstream` names.
    ROLES("roles"): Roles = "all";
    /// Whether the first start fills an empty catalog with events to look at. Only with SQLite and the `local` profile.
    DEMO("demo"): bool = "true";
    /// How many seconds pass on the wall clock of this process in one: what takes hours can be watched in minutes, as `urr stampede` does. More than 1 is for tests: refused with the `production` profile, with Redis, whose clock is its own, and on a `listen` beyond loopback.
    CLOCK_SPEED("clock_speed"): Int<1, 1_000> = "1";

    /// `sqlite` keeps one file per domain in the data directory; `postgres` needs `storage.url`.
    STORAGE_KIND("storage.kind"): StorageKind = "sqlite";
    /// The PostgreSQL database, with the login the process uses.
    STORAGE_URL("storage.url"): Option<PostgresUrl> = "";
    /// The same database with a login that may create roles and schemas: only `urr migrate` uses it. Without it, `storage.url` is used.
    STORAGE_ADMIN_URL("storage.admin_url"): Option<PostgresUrl> = "";
    /// The authority that signed the server's certificate, as PEM; the machine's own list if left out. A server beyond loopback is always spoken to over TLS unless the URL says `sslmode=disable`.
    STORAGE_CA_FILE("storage.ca_file"): Option<PathBuf> = "";
    /// Connections per domain and process. PostgreSQL allows 100 in all by default.
    STORAGE_POOL("storage.pool"): Int<1, 1_000> = "16";
    /// Whether concurrent SQLite writes share one fsync. Off is slower and no safer; it exists to be measured.
    STORAGE_GROUP_COMMIT("storage.group_commit"): bool = "true";
    /// `in_process` keeps events inside this process; `kafka` needs `bus.brokers`.
    BUS_KIND("bus.kind"): BusKind = "in_process";
    /// The brokers to start from.
    BUS_BROKERS("bus.brokers"): List<HostPort> = "";
    /// Further properties of librdkafka, such as credentials: `security.protocol=SASL_PLAINTEXT`, `sasl.mechanism=PLAIN`, `sasl.username=urr`, `sasl.password=…`. TLS to Kafka is not built in: `SSL` and `SASL_SSL` are refused, so the network between must be your own, or a tunnel.
    BUS_OPTIONS("bus.options"): List<Property> = "";
    /// Allows a broker beyond loopback without credentials.
    BUS_ALLOW_INSECURE("bus.allow_insecure"): bool = "false";
    /// Copies of every topic that is created. One broker can only hold 1.
    BUS_REPLICATION("bus.replication"): Int<1, 15> = "3";
    /// One node, or the start nodes of a cluster. None means no Redis.
    REDIS_URLS("redis.urls"): List<RedisUrl> = "";
    /// Whether the nodes form a Redis Cluster.
    REDIS_CLUSTER("redis.cluster"): bool = "false";
    /// The authorities that signed the nodes' certificates, as PEM; the machine's own list if left out.
    REDIS_CA_FILE("redis.ca_file"): Option<PathBuf> = "";
    /// Allows a node beyond loopback without TLS or a password.
    REDIS_ALLOW_INSECURE("redis.allow_insecure"): bool = "false";
    /// How long one call may take before the work goes on without Redis.
    REDIS_DEADLINE_MS("redis.deadline_ms"): Int<5, 10_000> = "100";

    /// Where accounts are, when not here: asked several times a second which sessions ended. Left out, tokens of ended sessions are accepted until they expire, at most an hour later; the `production` profile refuses that.
    REMOTE_AUTH("remote.auth"): Option<HttpUrl> = "";
    /// Where the catalog runs, when not here: the internal listener of its process, or of the balancer before several.
    REMOTE_CATALOG("remote.catalog"): Option<HttpUrl> = "";
    /// Where the waiting room runs, when not here: asked at most once a second and buyer whether they are still in. Only for processes with the role `tickets`.
    REMOTE_QUEUE("remote.queue"): Option<HttpUrl> = "";
    /// Where Tier 1 of the waiting room is, when not here: asked several times a second which rooms are open. Left out, nobody is sent to wait there.
    REMOTE_VWR("remote.vwr"): Option<HttpUrl> = "";
    /// The public listeners of processes with the role `auth`.
    UPSTREAM_AUTH("upstream.auth"): List<HttpUrl> = "";
    /// The public listeners of processes with the role `catalog`.
    UPSTREAM_CATALOG("upstream.catalog"): List<HttpUrl> = "";
    /// The public listeners of processes with the role `queue`.
    UPSTREAM_QUEUE("upstream.queue"): List<HttpUrl> = "";
    /// The public listeners of processes with the role `site`.
    UPSTREAM_SITE("upstream.site"): List<HttpUrl> = "";
    /// The public listeners of processes with the role `tickets`.
    UPSTREAM_TICKETS("upstream.tickets"): List<HttpUrl> = "";
    /// The public listeners of processes with the role `vwr`.
    UPSTREAM_VWR("upstream.vwr"): List<HttpUrl> = "";

    /// Where other processes reach this one's roles. Left out, nothing listens.
    INTERNAL_LISTEN("internal.listen"): Option<SocketAddr> = "";
    /// The token that calls between processes carry; the same in all of them.
    INTERNAL_TOKEN("internal.token"): Option<Secret<16>> = "";

    /// Largest request body.
    HTTP_BODY_BYTES("http.body_bytes"): Int<1_024, 67_108_864> = "1048576";
    /// Largest body of a request that signs somebody in.
    HTTP_AUTH_BODY_BYTES("http.auth_body_bytes"): Int<1_024, 1_048_576> = "10000";
    /// Largest request head.
    HTTP_HEADER_BYTES("http.header_bytes"): Int<8_192, 262_144> = "16384";
    /// Most header lines of a request.
    HTTP_HEADERS("http.headers"): Int<16, 1_000> = "100";
    /// Seconds until an unfinished request is answered with 504.
    HTTP_REQUEST_SECS("http.request_secs"): Int<1, { urr_rpc::REQUEST_BUDGET.as_secs() }> = "30";
    /// Seconds a client may take to send its request head.
    HTTP_HEADER_READ_SECS("http.header_read_secs"): Int<1, 60> = "10";
    /// Seconds a connection may be quiet between two requests; more than the balancer in front keeps its own. While more than half of `http.max_connections` are open it is `http.header_read_secs`.
    HTTP_KEEP_ALIVE_SECS("http.keep_alive_secs"): Int<1, 3_600> = "75";
    /// Seconds a client may refuse to take any byte of its answer before it is cut off.
    HTTP_WRITE_STALL_SECS("http.write_stall_secs"): Int<1, 300> = "30";
    /// Seconds from SIGTERM to the closing of the listeners, in which `/health/ready` says 503 and everything else is answered, for a balancer that looks there. They are taken from the 18 that requests in progress have.
    HTTP_NOTICE_SECS("http.notice_secs"): Int<0, 15> = "0";
    /// Requests answered at the same time; more get 503 with Retry-After.
    HTTP_MAX_IN_FLIGHT("http.max_in_flight"): Int<1, 1_000_000> = "10000";
    /// Connections open at the same time; more are told 503 and closed. Fewer where the process may not have as many files open, which it says at start.
    HTTP_MAX_CONNECTIONS("http.max_connections"): Int<1, 1_000_000> = "16000";
    /// Connections that one client address may have open, one /64 with IPv6; more are told 503 and closed. `0` is an eighth of `http.max_connections`, at least 256: phones behind one carrier share addresses. `http.trusted_proxies` are exempt, and so is the internal listener.
    HTTP_MAX_CONNECTIONS_PER_ADDRESS("http.max_connections_per_address"): Int<0, 1_000_000> = "0";
    /// Proxies and balancers in front of this process: what they say about the client's address is believed. Other gateways of ours need not be listed.
    HTTP_TRUSTED_PROXIES("http.trusted_proxies"): List<Cidr> = "";
    /// The header in which they say it.
    HTTP_FORWARDED_HEADER("http.forwarded_header"): ForwardedName = "x-forwarded-for";
    /// From where `/metrics`, and what is missing in `/health/ready`, may be seen on the public listener; whoever else asks is told whether the process is ready. What a proxy passes on is seen only if it is a trusted one. Left out, `127.0.0.0/8,::1` for the `local` profile and nowhere for `production`; the internal listener shows them to whoever has its token.
    HTTP_OPERATORS("http.operators"): Option<List<Cidr>> = "";
    /// Other origins whose pages may use the API from a browser (CORS). Only from origins of the same site, such as `https://shop.urr.example` for `https://urr.example`, do browsers send our cookies along; pages of other sites send tokens in `Authorization`.
    HTTP_ORIGINS("http.origins"): List<Origin> = "";
    /// Whether browsers are told to use nothing but TLS from now on. Only where the site is served by TLS.
    HTTP_HSTS("http.hsts"): bool = "false";

    /// Off where whatever stands in front counts already, and for load tests.
    LIMITS_ENABLED("limits.enabled"): bool = "true";
    /// Signing in, signing up, refreshing and everything else under `/api/auth`.
    LIMITS_AUTH("limits.auth"): Int<1, 1_000_000> = "60";
    /// Signing in to one account, from wherever.
    LIMITS_LOGIN("limits.login"): Int<1, 1_000_000> = "10";
    /// The waiting room.
    LIMITS_QUEUE("limits.queue"): Int<1, 1_000_000> = "120";
    /// Coming to the line in front of everything: its page, and taking a number.
    LIMITS_ARRIVALS("limits.arrivals"): Int<1, 1_000_000> = "30000";
    /// Taking and giving back seats.
    LIMITS_BOOKING("limits.booking"): Int<1, 1_000_000> = "30";
    /// Paying.
    LIMITS_PAYMENTS("limits.payments"): Int<1, 1_000_000> = "20";
    /// Everything else.
    LIMITS_GENERAL("limits.general"): Int<1, 1_000_000> = "3000";

    /// `pretty` for people, `json` for collectors.
    LOG_FORMAT("log.format"): LogFormat = "pretty";
    /// Which lines are written: a level, or levels per module such as `info,urr_tickets=debug`.
    LOG_FILTER("log.filter"): String = "info";
    /// One in so many requests is logged, and server errors, up to 100 a second. 0 logs errors only.
    LOG_ACCESS_SAMPLE("log.access_sample"): Int<0, 1_000_000> = "100";
    /// The OpenTelemetry collector that traces go to, such as `http://127.0.0.1:4318`. Left out, there are none.
    LOG_OTLP_URL("log.otlp_url"): Option<HttpUrl> = "";
    /// How many requests in a hundred are traced. A caller that already decided is followed.
    LOG_OTLP_PERCENT("log.otlp_percent"): Int<0, 100> = "10";

    /// Seconds an unpaid reservation keeps its seats.
    SALE_HOLD_SECS("sale.hold_secs"): Int<5, 3_600> = "300";

    /// Whether seats are sold only to those who are in. Left out, `true` where the process runs `queue` or `remote.queue` is set; the `production` profile wants it said where neither is.
    QUEUE_GUARD("queue.guard"): Option<bool> = "";
    /// How many may be in at once, unless an operator says otherwise for an event.
    QUEUE_THRESHOLD("queue.threshold"): Int<0, 1_000_000> = "1000";
    /// People let in per event and second at most.
    QUEUE_BATCH("queue.batch"): Int<1, 10_000> = "100";
    /// Seconds without a sign of life after which somebody who is in is out.
    QUEUE_SLOT_IDLE_SECS("queue.slot_idle_secs"): Int<5, 86_400> = "600";
    /// Seconds somebody may be in at most.
    QUEUE_SLOT_SECS("queue.slot_secs"): Int<5, 86_400> = "1200";
    /// Seconds without a sign of life after which somebody at the front of the line loses the place; their ticket brings it back for a day. Whoever is further back may be silent for longer: three times as long again as the line needs to get to them at full speed (`queue.batch`).
    QUEUE_WAITING_IDLE_SECS("queue.waiting_idle_secs"): Int<5, 86_400> = "600";
    /// How many may wait for one event; more get 503 with Retry-After.
    QUEUE_MAX_WAITING("queue.max_waiting"): Int<1, 10_000_000> = "50000";
    /// In how many lines one user may stand.
    QUEUE_MAX_EVENTS_PER_USER("queue.max_events_per_user"): Int<1, 100> = "3";
    /// Seconds for which nobody is let in after Redis has lost a room, so that everybody gets their place back first. Whoever waits asks every few seconds, or later if their turn cannot come sooner.
    QUEUE_GRACE_SECS("queue.grace_secs"): Int<0, 3_600> = "65";
    /// Days for which the journal of a closed room is kept.
    QUEUE_JOURNAL_DAYS("queue.journal_days"): Int<1, 3_650> = "90";
    /// The FIFO queue of SQS that is told of everybody who comes in. Left out, nobody is told. The role `notices` reads it.
    QUEUE_NOTICES_URL("queue.notices_url"): Option<HttpUrl> = "";

    /// `auto` counts places in Redis if there is one, else in memory; `dynamodb` in the table `<vwr.table_prefix>-vwr-counters`, which `urr migrate` makes, and needs `aws.region`.
    VWR_COUNTERS("vwr.counters"): CountersKind = "auto";
    /// What the name of the table begins with.
    VWR_TABLE_PREFIX("vwr.table_prefix"): String = "urr";

    /// Where DynamoDB and SQS are, such as `ap-northeast-2`.
    AWS_REGION("aws.region"): Option<String> = "";
    /// How long one call may take.
    AWS_DEADLINE_MS("aws.deadline_ms"): Int<50, 10_000> = "500";
    /// A server that stands in for DynamoDB. Plain `http` on this machine only, where it is shown made-up credentials.
    AWS_DYNAMODB_ENDPOINT("aws.dynamodb_endpoint"): Option<HttpUrl> = "";
    /// A server that stands in for SQS, likewise.
    AWS_SQS_ENDPOINT("aws.sqs_endpoint"): Option<HttpUrl> = "";

    /// `file` writes mails to `mail/` in the data directory; `smtp` needs `mail.smtp_server` and `mail.from`.
    MAIL_KIND("mail.kind"): MailKind = "file";
    /// The sender of every mail, such as `URR <no-reply@urr.example>`.
    MAIL_FROM("mail.from"): Option<String> = "";
    /// The mail server.
    MAIL_SMTP_SERVER("mail.smtp_server"): Option<HostPort> = "";
    /// `tls` from the first byte (port 465), `starttls` (port 587), or `plain` for a server on this machine only.
    MAIL_SMTP_SECURITY("mail.smtp_security"): SmtpProtection = "starttls";
    /// The user name for the mail server, if it needs one.
    MAIL_SMTP_USER("mail.smtp_user"): Option<String> = "";
    /// The password that goes with `mail.smtp_user`.
    MAIL_SMTP_PASSWORD("mail.smtp_password"): Option<Secret<1>> = "";
    /// Whether cookies go over HTTPS alone. Left out, `false` for the `local` profile on a loopback `listen` without an `https` `public_url`, and `true` elsewhere.
    AUTH_COOKIE_SECURE("auth.cookie_secure"): Option<bool> = "";
    /// Accounts are found by a hash of their address with this key. It must stay the same for as long as there are accounts.
    AUTH_INDEX_KEY("auth.index_key"): Option<Secret<32>> = "";
    /// Seal addresses, names and phone numbers in the database. The first key seals; the others open what was sealed before. None leaves them readable.
    AUTH_PII_KEYS("auth.pii_keys"): List<PiiKey> = "";
    /// Read personal data that was written before there were keys, and seal it in the background. Only until that is done: otherwise data that no key sealed is refused.
    AUTH_PII_SEAL_PLAIN("auth.pii_seal_plain"): bool = "false";
    /// `required`: an administrator who has not turned on a second factor may do what a user may, until it is on. Left out, `off` for the `local` profile and `required` for `production`.
    AUTH_ADMIN_SECOND_FACTOR("auth.admin_second_factor"): Option<SecondFactor> = "";
    /// Who verifies that a person has one account: `portone` needs the three settings below; `sandbox` makes persons up from name and phone number; `off` verifies nobody. Left out, `sandbox` for the `local` profile and `off` for `production`.
    AUTH_IDENTITY("auth.identity"): Option<IdentityKind> = "";
    /// Allows `auth.identity = sandbox` in the `production` profile, where made-up persons would pass for real ones.
    AUTH_IDENTITY_ALLOW_SANDBOX("auth.identity_allow_sandbox"): bool = "false";
    /// PortOne's V2 API secret.
    AUTH_PORTONE_SECRET("auth.portone_secret"): Option<Secret<1>> = "";
    /// PortOne's name for this shop, such as `store-…`.
    AUTH_PORTONE_STORE_ID("auth.portone_store_id"): Option<String> = "";
    /// The channel that verifies identities, such as `channel-key-…`. A verification through any other channel does not count.
    AUTH_PORTONE_CHANNEL_KEY("auth.portone_channel_key"): Option<String> = "";
    /// Where PortOne's API is.
    AUTH_PORTONE_URL("auth.portone_url"): HttpUrl = "https://api.portone.io";
    /// The version of the terms that people agree to.
    AUTH_TERMS_VERSION("auth.terms_version"): String = "1.0";
    /// Days after which the personal data of a closed account is erased.
    AUTH_ERASE_AFTER_DAYS("auth.erase_after_days"): Int<1, 3_650> = "30";
    /// Days without a sign-in after which an account falls dormant.
    AUTH_DORMANT_AFTER_DAYS("auth.dormant_after_days"): Int<1, 3_650> = "365";
    /// Days for which sign-ins are remembered.
    AUTH_HISTORY_DAYS("auth.history_days"): Int<1, 3_650> = "180";

    /// What Google knows us by; with it people may sign in with their Google account. Register `/api/auth/google/callback` of `public_url` there.
    AUTH_GOOGLE_CLIENT_ID("auth.google.client_id"): Option<String> = "";
    /// The secret that goes with it. Without it credentials of Google's own button are taken, but browsers are not sent to Google.
    AUTH_GOOGLE_CLIENT_SECRET("auth.google.client_secret"): Option<Secret<1>> = "";
    /// Who signs Google's ID tokens; its pages and keys are found from here.
    AUTH_GOOGLE_ISSUER("auth.google.issuer"): HttpUrl = "https://accounts.google.com";
    /// What Kakao knows us by (its REST API key); with it people may sign in with their Kakao account. Register `/api/auth/kakao/callback` there.
    AUTH_KAKAO_CLIENT_ID("auth.kakao.client_id"): Option<String> = "";
    /// The secret that goes with it, if it was switched on there.
    AUTH_KAKAO_CLIENT_SECRET("auth.kakao.client_secret"): Option<Secret<1>> = "";
    /// Where Kakao lets people sign in.
    AUTH_KAKAO_AUTHORIZE_URL("auth.kakao.authorize_url"): HttpUrl = "https://kauth.kakao.com/oauth/authorize";
    /// Where Kakao exchanges codes.
    AUTH_KAKAO_TOKEN_URL("auth.kakao.token_url"): HttpUrl = "https://kauth.kakao.com/oauth/token";
    /// Where Kakao tells about a user.
    AUTH_KAKAO_USER_URL("auth.kakao.user_url"): HttpUrl = "https://kapi.kakao.com/v2/user/me";
    /// What Naver knows us by; with it people may sign in with their Naver account. Register `/api/auth/naver/callback` there.
    AUTH_NAVER_CLIENT_ID("auth.naver.client_id"): Option<String> = "";
    /// The secret that goes with it.
    AUTH_NAVER_CLIENT_SECRET("auth.naver.client_secret"): Option<Secret<1>> = "";
    /// Where Naver lets people sign in.
    AUTH_NAVER_AUTHORIZE_URL("auth.naver.authorize_url"): HttpUrl = "https://nid.naver.com/oauth2.0/authorize";
    /// Where Naver exchanges codes.
    AUTH_NAVER_TOKEN_URL("auth.naver.token_url"): HttpUrl = "https://nid.naver.com/oauth2.0/token";
    /// Where Naver tells about a user.
    AUTH_NAVER_USER_URL("auth.naver.user_url"): HttpUrl = "https://openapi.naver.com/v1/nid/me";

    /// The key from which the keys of every signed token are derived; the same in all processes.
    SECURITY_SECRET("security.secret"): Option<SigningSecret> = "";
    /// Former values of `security.secret` whose tokens are still accepted, so that changing it signs nobody out.
    SECURITY_FORMER_SECRETS("security.former_secrets"): List<SigningSecret> = "";

    /// Whose account it is.
    ADMIN_EMAIL("admin.email"): Option<Email> = "";
    /// The account's password.
    ADMIN_PASSWORD("admin.password"): Option<Secret<12>> = "";
}

/// The setting with this key.
pub(crate) fn find(key: &str) -> Option<&'static Info> {
    SETTINGS.iter().copied().find(|info| info.key == key)
}

/// The end of a key that names the file a secret is in.
const FILE_SUFFIX: &str = "_file";

/// The secret setting whose `*_file` variant this key is.
pub(crate) fn find_file(key: &str) -> Option<&'static Info> {
    key.strip_suffix(FILE_SUFFIX).and_then(find).filter(|info| info.secret)
}

#[cfg(test)]
mod tests;
