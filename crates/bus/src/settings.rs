//! Settings of the bus, and the check for unprotected connections.

use urr_settings::{Count, HostPort, List, Problems, Property, choice, settings};

choice! {
    /// How messages are delivered between domains.
    pub enum BusKind {
        /// Consumers read the outbox tables directly.
        InProcess = "in_process",
        /// Kafka brokers.
        Kafka = "kafka",
    }
}

settings! {
    /// `[bus]`.
    pub struct Settings in "bus" "How messages are delivered between domains." {
        /// `in_process`: consumers read the outbox tables directly; `kafka` needs `bus.brokers`.
        pub kind: BusKind = "in_process",
        /// The brokers to start from.
        pub brokers: List<HostPort> = "",
        /// Further properties of librdkafka, such as credentials: `security.protocol=SASL_PLAINTEXT`,
        /// `sasl.mechanism=PLAIN`, `sasl.username=urr`, `sasl.password=…`. TLS to Kafka is not built in:
        /// `SSL` and `SASL_SSL` are refused, so the network between must be your own, or a tunnel.
        pub options: List<Property> = "",
        /// Allows a broker beyond loopback without credentials.
        pub allow_insecure: bool = "false",
        /// Copies of every topic that is created. One broker can only hold 1.
        pub replication: Count<1, 15> = "3",
    }
}

/// The property of librdkafka that selects TLS and credentials.
const PROTOCOL: &str = "security.protocol";

impl Settings {
    /// The brokers in librdkafka's format.
    pub fn broker_list(&self) -> String {
        self.brokers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// The Kafka configuration.
    #[cfg(feature = "kafka")]
    pub fn kafka(&self) -> crate::KafkaConfig {
        let pair = |option: &Property| (option.name.clone(), option.value.clone());
        crate::KafkaConfig {
            brokers: self.broker_list(),
            replication: i32::try_from(self.replication).expect("replication is at most 15"),
            options: self.options.iter().map(pair).collect(),
        }
    }

    /// Reports settings of the unused kind, missing Kafka settings, and unprotected connections.
    pub fn check(&self, problems: &mut Problems<'_>) {
        let (brokers, options) = const { (Self::info("bus.brokers"), Self::info("bus.options")) };
        if self.kind == BusKind::InProcess {
            for info in [brokers, options] {
                problems.stray(info, "is only for bus.kind = kafka; set that too, or remove it");
            }
            return;
        }
        if self.brokers.is_empty() {
            problems.missing(brokers, "bus.kind = kafka needs it");
        }
        if !cfg!(feature = "kafka") {
            let why = "= kafka, but this binary was built without the feature `kafka`";
            problems.stray(const { Self::info("bus.kind") }, why);
        }
        // librdkafka ignores case here.
        let protocol = self.options.iter().rev().find(|option| option.name == PROTOCOL);
        let protocol = protocol.map_or_else(String::new, |option| option.value.to_ascii_uppercase());
        if protocol.ends_with("SSL") {
            let why = format!(
                "says {PROTOCOL}={protocol}, but TLS to Kafka is not built in; use SASL_PLAINTEXT on a network of \
                 your own, or a tunnel to the brokers"
            );
            problems.stray(options, &why);
        } else if protocol != "SASL_PLAINTEXT" && !self.allow_insecure {
            self.check_network(problems);
        }
    }

    /// Requires credentials or `bus.allow_insecure` for remote brokers, because traffic could be
    /// read and changed on the way. Redis has the same rule.
    fn check_network(&self, problems: &mut Problems<'_>) {
        if let Some(broker) = self.brokers.iter().find(|broker| !broker.is_loopback()) {
            let what = format!(
                "the broker {broker} is not on this machine and is reached without credentials; set \
                 {PROTOCOL}=SASL_PLAINTEXT and what belongs to it in bus.options, or bus.allow_insecure = true if \
                 the network between is yours alone"
            );
            problems.about(const { Self::info("bus.brokers") }, &what);
        }
    }
}
