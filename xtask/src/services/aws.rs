//! Emulators of AWS: Amazon's `DynamoDB Local`, and `ElasticMQ` for SQS. Jars from Maven Central.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{
    java,
    ports::free_port,
    process::{self, Process},
};

const DYNAMODB: &str = "2.6.1";
const ELASTICMQ: &str = "1.7.1";
/// Maven Central has the Scala version in the artifact name.
const SCALA: &str = "2.13";

/// `DynamoDB Local`, in memory.
pub(super) fn start_dynamodb(dir: &Path, running: &mut Vec<Process>) -> Result<String> {
    let java = java::program()?;
    let jars = java::jars(&format!("dynamodb-{DYNAMODB}"), &[("com.amazonaws", "DynamoDBLocal", DYNAMODB)])?;
    let (home, log, port) = (dir.join("dynamodb"), dir.join("dynamodb.log"), free_port());
    fs::create_dir(&home)?;
    let mut server = java::jvm(&java, &jars, &home);
    // The jars include a native SQLite library, which the JVM loads from here.
    server.arg(format!("-Djava.library.path={}", jars.display()));
    server.arg("com.amazonaws.services.dynamodbv2.local.main.ServerRunner");
    server.args(["-inMemory", "-sharedDb", "-disableTelemetry", "-port", &port.to_string()]);
    running.push(Process::spawn(&mut server, &log, "KILL")?);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    process::wait(running, &log, || answers(address, "DynamoDB_20120810.ListTables").is_ok())?;
    Ok(format!("http://{address}"))
}

/// `ElasticMQ`, in memory, with the limits of SQS.
pub(super) fn start_sqs(dir: &Path, running: &mut Vec<Process>) -> Result<String> {
    let java = java::program()?;
    let artifact = format!("elasticmq-server_{SCALA}");
    let jars = java::jars(&format!("elasticmq-{ELASTICMQ}"), &[("org.elasticmq", &artifact, ELASTICMQ)])?;
    let (home, log, port) = (dir.join("sqs"), dir.join("sqs.log"), free_port());
    fs::create_dir(&home)?;
    let configuration = home.join("elasticmq.conf");
    fs::write(&configuration, elasticmq(port))?;
    let mut server = java::jvm(&java, &jars, &home);
    server.arg(format!("-Dconfig.file={}", configuration.display())).arg("org.elasticmq.server.Main");
    running.push(Process::spawn(&mut server, &log, "KILL")?);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    process::wait(running, &log, || answers(address, "AmazonSQS.ListQueues").is_ok())?;
    Ok(format!("http://{address}"))
}

fn elasticmq(port: u16) -> String {
    format!(
        "include classpath(\"application.conf\")
node-address {{ host = 127.0.0.1, port = {port} }}
rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = \"127.0.0.1\", sqs-limits = strict }}
rest-stats {{ enabled = false }}
"
    )
}

/// Sends a simple request; any successful response means that the server is ready.
fn answers(address: SocketAddr, question: &str) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    // Neither emulator verifies signatures, but one of them requires a well-formed header.
    const CREDENTIALS: &str = "AWS4-HMAC-SHA256 Credential=local/20260101/local/any/aws4_request, \
                          SignedHeaders=host, Signature=0";
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: {address}\r\nX-Amz-Target: {question}\r\nAuthorization: {CREDENTIALS}\r\n\
         Content-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let said = String::from_utf8_lossy(&answer);
    let status = said.lines().next().context("the response is empty")?;
    ensure!(status.contains(" 200 "), "{address} answered {status}");
    Ok(())
}
