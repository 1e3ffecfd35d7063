//! Settings of mail.

use urr_settings::{HostPort, Problems, Secret, choice, settings};

use crate::SmtpConfig;

choice! {
    /// Where mails go.
    pub enum MailKind {
        /// Into a folder of the data directory.
        File = "file",
        /// To a mail server.
        Smtp = "smtp",
    }
}

choice! {
    /// Transport security of the connection to a mail server.
    pub enum SmtpSecurity {
        /// TLS from the first byte, usually on port 465.
        Tls = "tls",
        /// STARTTLS, usually on port 587. A server that does not offer it is refused.
        StartTls = "starttls",
        /// No encryption: for a relay on the same machine.
        Plain = "plain",
    }
}

settings! {
    /// How mails are sent.
    pub struct Settings in "mail" "How mails are sent, for every domain." {
        /// `file` writes mails to `mail/` in the data directory; `smtp` needs `mail.smtp_server`
        /// and `mail.from`.
        pub kind: MailKind = "file",
        /// The sender, such as `URR <no-reply@urr.example>`.
        pub from: Option<String> = "",
        /// The mail server.
        pub server("smtp_server"): Option<HostPort> = "",
        /// `tls` from the first byte (port 465), `starttls` (port 587), or `plain` for a server on
        /// this machine only.
        pub security("smtp_security"): SmtpSecurity = "starttls",
        /// The user name for the mail server, if it requires one.
        pub user("smtp_user"): Option<String> = "",
        /// The password that goes with `mail.smtp_user`.
        pub password("smtp_password"): Option<Secret<1>> = "",
    }
}

impl Settings {
    /// The mail server, if `mail.kind` is `smtp`.
    pub fn smtp(&self) -> Option<SmtpConfig> {
        let server = self.server.as_ref().filter(|_| self.kind == MailKind::Smtp)?;
        Some(SmtpConfig {
            host: server.host.clone(),
            port: server.port,
            security: self.security,
            credentials: self
                .user
                .clone()
                .zip(self.password.as_ref().map(|password| password.expose().to_owned())),
            from: self.from.clone()?,
            timeout: SmtpConfig::TIMEOUT,
        })
    }

    /// Reports settings of a mail server that is not used, and incomplete ones.
    pub fn check(&self, problems: &mut Problems<'_>) {
        let from = const { Self::info("mail.from") };
        let server = const { Self::info("mail.smtp_server") };
        let security = const { Self::info("mail.smtp_security") };
        let user = const { Self::info("mail.smtp_user") };
        let password = const { Self::info("mail.smtp_password") };
        if self.kind == MailKind::File {
            for info in [from, server, security, user, password] {
                problems.stray(info, "is only for mail.kind = smtp; set that too, or remove it");
            }
            return;
        }
        for (info, is_there) in [(server, self.server.is_some()), (from, self.from.is_some())] {
            if !is_there {
                problems.missing(info, "mail.kind = smtp needs it");
            }
        }
        match (&self.user, &self.password) {
            (Some(_), None) => problems.missing(password, "mail.smtp_user is"),
            (None, Some(_)) => problems.missing(user, "mail.smtp_password is"),
            _ => {}
        }
        let is_far = self.server.as_ref().is_some_and(|server| !server.is_loopback());
        if self.security == SmtpSecurity::Plain && is_far {
            let why = "= plain, but the server is on another machine; choose tls or starttls";
            problems.stray(security, why);
        }
    }
}
