//! The SMTP transport.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
    transport::smtp::{
        self,
        authentication::Credentials,
        client::{Tls, TlsParameters},
        extension::ClientId,
    },
};
use urr_kernel::Timestamp;

use crate::{Mail, MailError, Mailer, SmtpSecurity};

/// Connection and sender of a mail server.
#[derive(Clone)]
pub struct SmtpConfig {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Transport security.
    pub security: SmtpSecurity,
    /// User name and password, if the server requires them.
    pub credentials: Option<(String, String)>,
    /// The sender, such as `URR <no-reply@urr.example>`.
    pub from: String,
    /// Time limit of one mail, from connecting to the last reply.
    pub timeout: Duration,
}

impl SmtpConfig {
    /// The default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(20);
}

impl fmt::Debug for SmtpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, security, from, timeout, .. } = self;
        f.debug_struct("SmtpConfig")
            .field("host", host)
            .field("port", port)
            .field("security", security)
            .field("from", from)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
pub enum BadSmtp {
    /// The sender is malformed.
    #[error("the sender {0:?} is not an address")]
    From(String),
    /// TLS cannot be set up.
    #[error("TLS to the mail server cannot be set up")]
    Tls(#[source] smtp::Error),
}

/// Sends mails to a mail server.
pub struct SmtpMailer {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    timeout: Duration,
}

impl SmtpMailer {
    /// Connects with the first mail, not here.
    pub fn new(config: &SmtpConfig) -> Result<Self, BadSmtp> {
        let from: Mailbox = config.from.parse().map_err(|_| BadSmtp::From(config.from.clone()))?;
        let parameters = || TlsParameters::new(config.host.clone()).map_err(BadSmtp::Tls);
        let tls = match config.security {
            SmtpSecurity::Tls => Tls::Wrapper(parameters()?),
            SmtpSecurity::StartTls => Tls::Required(parameters()?),
            SmtpSecurity::Plain => Tls::None,
        };
        let mut server = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port)
            .tls(tls)
            .hello_name(ClientId::Domain(from.email.domain().to_owned()))
            .timeout(Some(config.timeout));
        if let Some((name, password)) = &config.credentials {
            server = server.credentials(Credentials::new(name.clone(), password.clone()));
        }
        Ok(Self { server: server.build(), from, timeout: config.timeout })
    }

    fn message(&self, mail: &Mail) -> Result<Message, MailError> {
        let permanent = |error: Box<dyn std::error::Error + Send + Sync>| MailError::Permanent(error);
        let to = mail.to.parse().map_err(|error: lettre::address::AddressError| permanent(error.into()))?;
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(&mail.subject)
            .date(system_time(mail.at))
            // The same for every attempt, so that servers and mail programs can recognise a repeat.
            .message_id(Some(format!("<{}@{}>", mail.id, self.from.email.domain())))
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone())
            .map_err(|error| permanent(error.into()))
    }
}

pub(crate) fn system_time(at: Timestamp) -> std::time::SystemTime {
    let since = u64::try_from(at.as_micros()).unwrap_or(0);
    std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(since)
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, mail: Mail) -> Result<(), MailError> {
        let message = self.message(&mail)?;
        // lettre's timeout covers only connecting; this one covers the whole exchange.
        let sent = tokio::time::timeout(self.timeout, self.server.send(message)).await;
        match sent.map_err(|late| MailError::Temporary(late.into()))? {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(MailError::Permanent(error.into())),
            Err(error) => Err(MailError::Temporary(error.into())),
        }
    }
}

#[cfg(test)]
mod tests;
