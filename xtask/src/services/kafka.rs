//! Apache Kafka as one `KRaft` node: broker and controller in one JVM, jars from Maven Central.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use anyhow::{Result, ensure};

use super::{
    java,
    ports::free_port,
    process::{self, Process},
};
use crate::command::output;

const VERSION: &str = "4.3.1";
/// Maven Central has the Scala version in the artifact name.
const SCALA: &str = "2.13";
/// Kafka logs through slf4j 1.7; this version binds it to the log4j of the broker.
const LOG4J_VERSION: &str = "2.25.4";
/// Sixteen bytes in URL-safe base64, as Kafka requires: `urr-test-kafka-1`.
const CLUSTER_ID: &str = "dXJyLXRlc3Qta2Fma2EtMQ";

pub(crate) fn start(dir: &Path, running: &mut Vec<Process>) -> Result<String> {
    let java = java::program()?;
    let broker = format!("kafka_{SCALA}");
    let jars = java::jars(
        &format!("kafka-{VERSION}"),
        &[
            ("org.apache.kafka", &broker, VERSION),
            ("org.apache.logging.log4j", "log4j-core", LOG4J_VERSION),
            ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
        ],
    )?;
    let (port, controller_port) = (free_port(), free_port());
    let home = dir.join("kafka");
    let log = dir.join("kafka.log");
    fs::create_dir(&home)?;
    let configuration = home.join("server.properties");
    fs::write(&configuration, properties(&home, port, controller_port))?;
    let logging = home.join("log4j2.properties");
    fs::write(&logging, LOGGING)?;
    let jvm = || {
        let mut command = java::jvm(&java, &jars, &home);
        command.arg(format!("-Dlog4j2.configurationFile={}", logging.display()));
        command
    };

    let mut format = jvm();
    format.args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]).arg(&configuration);
    output(&mut format)?;
    running.push(Process::spawn(jvm().arg("kafka.Kafka").arg(&configuration), &log, "KILL")?);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    process::wait(running, &log, || answers(address).is_ok())?;
    Ok(address.to_string())
}

fn properties(home: &Path, port: u16, controller_port: u16) -> String {
    let data = home.join("data");
    format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
# The product creates its topics; a misspelt name must not.
auto.create.topics.enable=false
num.partitions=3
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
# Groups form immediately, and a dead consumer is detected within the time limit of a test.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
",
        data = data.display()
    )
}

const LOGGING: &str = "\
status=warn
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c{1}: %m%n
rootLogger.level=info
rootLogger.appenderRef.console.ref=console
";

/// Requests the API versions; any well-formed response means that the broker is ready.
fn answers(address: SocketAddr) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    // Length 10, API key 18, version 0, correlation id 7, no client id.
    const QUESTION: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&QUESTION)?;
    // Length, correlation id, error code.
    let mut answer = [0_u8; 10];
    stream.read_exact(&mut answer)?;
    ensure!(answer[4..] == [0, 0, 0, 7, 0, 0], "Kafka answered {answer:?}");
    Ok(())
}
