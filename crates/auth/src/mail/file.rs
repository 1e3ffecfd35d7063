//! Mails as files in a folder: for an installation without a mail server.

use std::{
    io,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use tokio::{fs, io::AsyncWriteExt as _};

use super::{Mail, MailError, Mailer};

/// Mails that are kept; beyond them the oldest goes. At 1 kB each they are a few megabytes.
const MAX_FILES: usize = 2_000;

/// Writes each mail to `<folder>/<id>.eml`. Ids sort by time.
#[derive(Clone, Debug)]
pub struct FileMailer {
    folder: PathBuf,
}

impl FileMailer {
    /// Mails go to this folder, which is made with the first of them.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    async fn write(&self, mail: &Mail) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder).await?;
        let path = self.folder.join(format!("{}.eml", mail.id));
        let text = format!(
            "To: {}\r\nSubject: {}\r\nDate: {}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{}",
            mail.to,
            mail.subject,
            mail.at,
            mail.text.expose()
        );
        // For the owner of the installation alone: whoever reads a link can set somebody's password.
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).await?;
        file.write_all(text.as_bytes()).await?;
        file.flush().await?;
        forget_oldest(&self.folder).await?;
        Ok(path)
    }
}

async fn forget_oldest(folder: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    let mut entries = fs::read_dir(folder).await?;
    while let Some(entry) = entries.next_entry().await? {
        if entry.path().extension().is_some_and(|ending| ending == "eml") {
            names.push(entry.path());
        }
    }
    names.sort();
    for path in names.iter().take(names.len().saturating_sub(MAX_FILES)) {
        match fs::remove_file(path).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[async_trait]
impl Mailer for FileMailer {
    async fn send(&self, mail: Mail) -> Result<(), MailError> {
        let path = self.write(&mail).await.map_err(|error| MailError::Temporary(error.into()))?;
        // Where it is, never what it says: a link in a log would be worth as much as the mail.
        tracing::info!(path = %path.display(), subject = mail.subject, "a mail was written to a file");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::auth::Sensitive;
    use urr_testkit::fixed;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_mail_becomes_a_file_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (clock, _) = fixed();
        let mailer = FileMailer::new(dir.path().join("mail"));
        let mail = |number: u128| Mail {
            id: Uuid::from_u128(number),
            to: "minji@example.com".to_owned(),
            subject: "제목".to_owned(),
            text: Sensitive::new("본문"),
            at: clock.now(),
        };
        let path = |number: u128| dir.path().join(format!("mail/{}.eml", Uuid::from_u128(number)));
        mailer.send(mail(1)).await.unwrap();
        let written = std::fs::read_to_string(path(1)).unwrap();
        assert!(
            written.contains("To: minji@example.com\r\n") && written.ends_with("\r\n\r\n본문"),
            "{written}"
        );
        for number in 2..=MAX_FILES as u128 {
            std::fs::write(path(number), "").unwrap();
        }
        mailer.send(mail(1)).await.unwrap();
        assert!(path(1).exists(), "sending again is harmless");
        mailer.send(mail(MAX_FILES as u128 + 1)).await.unwrap();
        assert!(!path(1).exists() && path(2).exists());
    }
}
