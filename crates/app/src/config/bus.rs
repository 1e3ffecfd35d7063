//! How events travel between roles, and whether strangers could listen on the way.

use std::net::IpAddr;

use super::{
    Bus, Problem, addresses::HostPort, choices::BusKind, kinds::Property, resolve::Problems, settings as s,
};

/// The property of librdkafka that says whether there is TLS, and whether there are credentials.
const PROTOCOL: &str = "security.protocol";

impl Problems<'_> {
    pub(super) fn bus(&mut self) -> Bus {
        let brokers = self.values.get(&s::BUS_BROKERS).0;
        match self.values.get(&s::BUS_KIND) {
            BusKind::InProcess => {
                for info in [&s::BUS_BROKERS.info, &s::BUS_OPTIONS.info] {
                    self.stray(info, "is only for bus.kind = kafka; set that too, or remove it");
                }
                Bus::InProcess
            }
            BusKind::Kafka => {
                if brokers.is_empty() {
                    self.missing(&s::BUS_BROKERS.info, "bus.kind = kafka needs it");
                }
                if !cfg!(feature = "kafka") {
                    let why = "= kafka, but this binary was built without the feature `kafka`";
                    self.stray(&s::BUS_KIND.info, why);
                }
                let options = self.values.get(&s::BUS_OPTIONS).0;
                self.strangers(&brokers, &options);
                Bus::Kafka {
                    brokers: brokers.into_iter().map(|HostPort(broker)| broker).collect(),
                    replication: self.values.get(&s::BUS_REPLICATION).count(),
                    options,
                }
            }
        }
    }

    /// Anybody on the way to a broker beyond this machine could read and write. As with Redis, credentials or a permission is asked for.
    fn strangers(&mut self, brokers: &[HostPort], options: &[Property]) {
        // librdkafka does not mind the case.
        let protocol = options.iter().rev().find(|option| option.name == PROTOCOL);
        let protocol = protocol.map_or_else(String::new, |option| option.value.to_ascii_uppercase());
        if protocol.ends_with("SSL") {
            let why = format!(
                "says {PROTOCOL}={protocol}, but TLS to Kafka is not built in; use SASL_PLAINTEXT on a network of your own, or a \
                 tunnel to the brokers"
            );
            return self.stray(&s::BUS_OPTIONS.info, &why);
        }
        if protocol == "SASL_PLAINTEXT" || self.values.get(&s::BUS_ALLOW_INSECURE) {
            return;
        }
        if let Some(HostPort(broker)) = brokers.iter().find(|broker| !is_loopback(broker)) {
            let source = self.values.source(&s::BUS_BROKERS.info);
            self.found.push(Problem(format!(
                "{source}: the broker {broker} is not on this machine and is spoken to without credentials; set \
                 {PROTOCOL}=SASL_PLAINTEXT and what belongs to it in bus.options, or bus.allow_insecure = true if the network \
                 between is yours alone"
            )));
        }
    }
}

fn is_loopback(HostPort(broker): &HostPort) -> bool {
    let host = broker.rsplit_once(':').map_or(broker.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>()
        .map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}
