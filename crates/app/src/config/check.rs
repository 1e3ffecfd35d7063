//! Checks between sections.

use urr_bus::BusKind;
use urr_settings::Problems;

use super::{Admin, Aws, Config, Internal, Profile, Remote};
use crate::{domains::notices, roles::Role};

impl Config {
    /// Reports every setting that contradicts others.
    pub(super) fn check(&self, problems: &mut Problems<'_>) {
        self.storage.check(problems);
        self.bus.check(problems);
        self.redis.check(problems);
        self.vwr.check(problems);
        self.check_dynamodb(problems);
        self.check_sqs(problems);
        self.mail.check(problems);
        self.auth.check(self.profile == Profile::Production, problems);
        self.check_admin(problems);
        self.check_roles(problems);
        self.check_bus(problems);
        self.check_listeners(problems);
        self.check_clock(problems);
        self.check_production(problems);
    }

    fn check_dynamodb(&self, problems: &mut Problems<'_>) {
        if self.vwr.uses_dynamodb() {
            return self.check_aws("vwr.counters = dynamodb", problems);
        }
        let endpoint = const { Aws::info("aws.dynamodb_endpoint") };
        problems.stray(endpoint, "is only for vwr.counters = dynamodb; set that too, or remove it");
    }

    fn check_sqs(&self, problems: &mut Problems<'_>) {
        let info = const { urr_queue::Settings::info("queue.notices_url") };
        if let Some(url) = &self.queue.notices_url {
            if url.expose().strip_suffix(".fifo").is_none() {
                problems.stray(info, "is no FIFO queue, whose name ends with .fifo");
            }
            return self.check_aws("queue.notices_url", problems);
        }
        let endpoint = const { Aws::info("aws.sqs_endpoint") };
        problems.stray(endpoint, "is only for queue.notices_url; set that too, or remove it");
        if self.roles.has(&notices::ROLE) {
            problems.missing(info, "the role notices reads it");
        }
    }

    /// The settings that every AWS service needs.
    fn check_aws(&self, wanted: &str, problems: &mut Problems<'_>) {
        if self.aws.region.is_none() {
            problems.missing(const { Aws::info("aws.region") }, &format!("{wanted} needs it"));
        }
        if !cfg!(feature = "aws") {
            problems.add(format!("{wanted} is set, but this binary was built without the feature `aws`"));
        }
    }

    /// The first administrator needs an address and a password.
    fn check_admin(&self, problems: &mut Problems<'_>) {
        match (&self.admin.email, &self.admin.password) {
            (Some(_), None) => {
                problems.missing(const { Admin::info("admin.password") }, "admin.email is");
            }
            (None, Some(_)) => {
                problems.missing(const { Admin::info("admin.email") }, "admin.password is");
            }
            _ => {}
        }
    }

    /// Every role that is called must run here or be remote, and the process must have something to
    /// serve.
    fn check_roles(&self, problems: &mut Problems<'_>) {
        for role in self.needs_remote().filter(|role| self.remote.of(*role).is_none()) {
            if let Some(info) = Remote::info(role) {
                let why = format!("roles = {} needs {} and does not run it", self.roles, role.name);
                problems.missing(info, &why);
            }
        }
        let works = |role: &Role| role.routes.is_some() || *role == Role::of(&notices::ROLE);
        if !self.roles.iter().any(|role| works(&role)) && self.passes_on().next().is_none() {
            let serving: Vec<_> = Role::serving().map(|role| role.name).collect();
            let (last, rest) = serving.split_last().expect("some roles have public routes");
            let why = format!(
                "has no role with routes, and upstream has no target, so there is nothing to serve; \
                 add {} or {last} here or there",
                rest.join(", ")
            );
            problems.stray(const { Self::info("roles") }, &why);
        }
    }

    /// Domains in different processes need Kafka between them.
    fn check_bus(&self, problems: &mut Problems<'_>) {
        if self.bus.kind != BusKind::InProcess {
            return;
        }
        let roles = const { Self::info("roles") };
        let pairs = Role::all().flat_map(|role| role.listens_to.iter().map(move |source| (role, *source)));
        for (listener, source) in pairs {
            let (listens, publishes) = (self.roles.has(listener), self.roles.has(source));
            // A role that the source calls must run somewhere; other consumers may run nowhere.
            if (listens && !publishes) || (publishes && !listens && source.calls.contains(&listener)) {
                let what = format!(
                    "roles = {} separates {} from {}, whose messages bus.kind = in_process cannot carry; set bus.kind = \
                     kafka, or run both together",
                    self.roles, listener.name, source.name,
                );
                problems.about(roles, &what);
            }
        }
    }

    fn check_listeners(&self, problems: &mut Problems<'_>) {
        if self.listen.port() != 0 && self.internal.listen == Some(self.listen) {
            let info = const { Internal::info("internal.listen") };
            problems.stray(info, "is the same as `listen`; give it a port of its own");
        }
    }

    /// Only tests may run a clock faster than the machine's.
    fn check_clock(&self, problems: &mut Problems<'_>) {
        if self.clock_speed == 1 {
            return;
        }
        let speed = const { Self::info("clock_speed") };
        if self.profile == Profile::Production {
            problems.stray(speed, "is for tests; profile = production keeps the machine's time");
        }
        if self.redis.is_on() || !self.storage.is_sqlite() {
            problems.stray(speed, "is for files and memory alone: a server's clock is its own");
        }
        if !self.listen.ip().is_loopback() || self.internal.listen.is_some() {
            let why =
                "is for tests on this machine: `listen` must be on loopback, and no other process may call";
            problems.stray(speed, why);
        }
    }
}
