//! TLS and credentials of Kafka.

use super::ConfigInput;

fn kafka(brokers: &str) -> ConfigInput {
    ConfigInput::new().env("URR_BUS_KIND", "kafka").env("URR_BUS_BROKERS", brokers)
}

#[test]
fn tls_to_kafka_is_refused_because_it_is_not_built_in() {
    for protocol in ["SSL", "SASL_SSL", "sasl_ssl"] {
        let options = format!("security.protocol={protocol}");
        let problem = kafka("localhost:9092").env("URR_BUS_OPTIONS", &options).problem();
        assert!(problem.starts_with("URR_BUS_OPTIONS: ") && problem.contains("not built in"), "{problem}");
    }
}

#[test]
fn beyond_loopback_kafka_needs_credentials_or_permission() {
    for here in ["127.0.0.1:9092", "127.8.8.8:9092", "localhost:9092", "[::1]:9092"] {
        kafka(here).config();
    }
    for there in
        ["10.0.0.5:9092", "kafka-1:9092", "localhost:9092,kafka-2:9092", "localhost.example.com:9092"]
    {
        let problem = kafka(there).problem();
        assert!(
            problem.starts_with("URR_BUS_BROKERS: ") && problem.contains("bus.allow_insecure"),
            "{problem}"
        );
        let problem = kafka(there).env("URR_BUS_OPTIONS", "security.protocol=plaintext").problem();
        assert!(problem.contains("bus.allow_insecure"), "{problem}");
        kafka(there).env("URR_BUS_ALLOW_INSECURE", "true").config();
        let sasl = "security.protocol=SASL_PLAINTEXT,sasl.mechanism=PLAIN,sasl.username=urr,sasl.password=x";
        kafka(there).env("URR_BUS_OPTIONS", sasl).config();
    }
}
