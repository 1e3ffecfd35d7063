//! Tests against a mail server with configurable replies.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use urr_testkit::{fixed, within};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// How the server handles a mail.
#[derive(Clone, Copy, PartialEq)]
enum ServerBehavior {
    Friendly,
    /// Replies to the recipient with this line.
    Refuses(&'static str),
    /// Accepts the connection and never replies.
    Silent,
    /// Accepts the mail and closes the connection before it replies.
    HangsUp,
}

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<String>>>);

impl Received {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[expect(clippy::disallowed_methods, reason = "the server lives as long as the test's runtime")]
async fn server(behavior: ServerBehavior) -> (u16, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Received::default();
    let kept = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, behavior, kept.clone()));
        }
    });
    (port, received)
}

async fn serve(stream: TcpStream, behavior: ServerBehavior, received: Received) -> Option<()> {
    let mut stream = BufReader::new(stream);
    if behavior == ServerBehavior::Silent {
        std::future::pending::<()>().await;
    }
    stream.write_all(b"220 test ready\r\n").await.ok()?;
    let mut line = String::new();
    let mut mail: Option<String> = None;
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if let Some(text) = &mut mail {
            if line != ".\r\n" {
                text.push_str(&line);
                continue;
            }
            received.0.lock().unwrap().push(mail.take()?);
            if behavior == ServerBehavior::HangsUp {
                return None;
            }
            stream.write_all(b"250 taken\r\n").await.ok()?;
            continue;
        }
        let verb: String = line.chars().take(4).collect::<String>().to_uppercase();
        let answer = match (verb.as_str(), behavior) {
            ("RCPT", ServerBehavior::Refuses(answer)) => answer,
            ("DATA", _) => {
                mail = Some(String::new());
                "354 go on"
            }
            ("QUIT", _) => "221 bye",
            _ => "250 ok",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
    }
}

fn mailer(port: u16, security: SmtpSecurity, timeout: Duration) -> SmtpMailer {
    let config = SmtpConfig {
        host: "127.0.0.1".to_owned(),
        port,
        security,
        credentials: None,
        from: "URR <no-reply@urr.example>".to_owned(),
        timeout,
    };
    SmtpMailer::new(&config).unwrap()
}

fn mail() -> Mail {
    let (clock, ids) = fixed();
    Mail {
        id: ids.next(),
        to: "minji@xn--2w2ba672h.xn--3e0b707e".to_owned(),
        subject: "비밀번호 재설정".to_owned(),
        text: "링크\n.\nhttps://urr.example/reset-password#token=abc\n".to_owned(),
        at: clock.now(),
    }
}

async fn send(behavior: ServerBehavior, timeout: Duration) -> (Result<(), MailError>, Vec<String>) {
    let (port, received) = server(behavior).await;
    let sent = within(PATIENCE, mailer(port, SmtpSecurity::Plain, timeout).send(mail())).await;
    (sent, received.all())
}

#[tokio::test]
async fn a_mail_arrives_whole() {
    let (sent, received) = send(ServerBehavior::Friendly, PATIENCE).await;
    sent.unwrap();
    let [text] = &received[..] else { panic!("{received:?}") };
    for part in [
        "From: URR <no-reply@urr.example>\r\n",
        "To: minji@xn--2w2ba672h.xn--3e0b707e\r\n",
        "Date: Mon, 01 Jun 2026 03:00:00",
        "Subject: =?utf-8?",
        "Content-Type: text/plain; charset=utf-8\r\n",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[tokio::test]
async fn a_4xx_reply_is_temporary_and_a_5xx_reply_is_permanent() {
    let (sent, received) = send(ServerBehavior::Refuses("451 try later"), PATIENCE).await;
    assert!(matches!(sent, Err(MailError::Temporary(_))), "{sent:?}");
    let (sent, _) = send(ServerBehavior::Refuses("550 no such mailbox"), PATIENCE).await;
    assert!(matches!(sent, Err(MailError::Permanent(_))), "{sent:?}");
    assert!(received.is_empty());
}

#[tokio::test]
async fn a_silent_or_disconnecting_server_is_a_temporary_error() {
    let (sent, _) = send(ServerBehavior::Silent, Duration::from_millis(200)).await;
    assert!(matches!(sent, Err(MailError::Temporary(_))), "{sent:?}");
    let (sent, received) = send(ServerBehavior::HangsUp, PATIENCE).await;
    assert!(matches!(sent, Err(MailError::Temporary(_))), "{sent:?}");
    assert_eq!(received.len(), 1, "delivery is unknown, so the mail is sent again");
    let no_server = mailer(urr_testkit::free_port(), SmtpSecurity::Plain, PATIENCE);
    assert!(matches!(no_server.send(mail()).await, Err(MailError::Temporary(_))));
}

#[tokio::test]
async fn without_tls_nothing_is_sent_if_tls_is_required() {
    let (port, received) = server(ServerBehavior::Friendly).await;
    for security in [SmtpSecurity::StartTls, SmtpSecurity::Tls] {
        let sent = within(PATIENCE, mailer(port, security, Duration::from_secs(2)).send(mail())).await;
        assert!(sent.is_err(), "{security:?}");
    }
    assert!(received.all().is_empty());
}

#[test]
fn a_sender_must_be_an_address_and_passwords_are_not_printed() {
    let config = SmtpConfig {
        host: "mail.example".to_owned(),
        port: 465,
        security: SmtpSecurity::Tls,
        credentials: Some(("urr".to_owned(), "hunter22".to_owned())),
        from: "nobody".to_owned(),
        timeout: SmtpConfig::TIMEOUT,
    };
    assert!(matches!(SmtpMailer::new(&config), Err(BadSmtp::From(_))));
    assert!(!format!("{config:?}").contains("hunter22"));
    let good = SmtpConfig { from: "URR <no-reply@urr.example>".to_owned(), ..config };
    SmtpMailer::new(&good).unwrap();
}
