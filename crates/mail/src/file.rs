//! The file transport: writes mails to a folder. For installations without a mail server.

use std::{
    io,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use lettre::message::header::{Date, Headers};
use tokio::{fs, io::AsyncWriteExt as _};

use urr_kernel::Timestamp;
use uuid::Uuid;

use crate::{Mail, MailError, Mailer, smtp::system_time};

/// The sender of mails in files.
const FROM: &str = "URR <no-reply@localhost>";

/// The extension of a mail's file.
const ENDING: &str = "eml";

/// Maximum number of files; the oldest are deleted. At 1 kB each they take a few megabytes.
const MAX_FILES: usize = 2_000;

/// Writes each mail to `<folder>/<id>.eml`. Ids sort by time.
#[derive(Clone, Debug)]
pub struct FileMailer {
    folder: PathBuf,
}

impl FileMailer {
    /// Writes to this folder, which is created with the first mail.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    async fn write(&self, mail: &Mail) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder).await?;
        let path = self.path(mail.id);
        let Mail { id, to, subject, text, at } = mail;
        let mut date = Headers::new();
        date.set(Date::new(system_time(*at)));
        // Not encoded as mail servers require, so that the files are readable.
        let text = format!(
            "To: {to}\r\nFrom: {FROM}\r\nSubject: {subject}\r\n{date}Message-ID: <{id}@localhost>\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{text}"
        );
        // Readable by the owner alone: a link in a mail can set an account's password.
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).await?;
        file.write_all(text.as_bytes()).await?;
        file.flush().await?;
        let files = files(&self.folder).await?;
        for path in files.iter().take(files.len().saturating_sub(MAX_FILES)) {
            remove(path).await?;
        }
        Ok(path)
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.folder.join(format!("{id}.{ENDING}"))
    }
}

/// Every mail in the folder, the oldest first.
async fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut entries = match fs::read_dir(folder).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(paths),
        entries => entries?,
    };
    while let Some(entry) = entries.next_entry().await? {
        if entry.path().extension().is_some_and(|ending| ending == ENDING) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// When a mail was queued, from the time in its id.
fn written_at(path: &Path) -> Option<Timestamp> {
    let id: Uuid = path.file_stem()?.to_str()?.parse().ok()?;
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    Some(Timestamp::from_micros(micros.checked_add(i64::from(nanos / 1_000))?))
}

async fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[async_trait]
impl Mailer for FileMailer {
    async fn send(&self, mail: Mail) -> Result<(), MailError> {
        let path = self.write(&mail).await.map_err(|error| MailError::Temporary(error.into()))?;
        // Never log the text: it may contain a link that signs its reader in.
        tracing::info!(path = %path.display(), subject = mail.subject, "mail written to a file");
        Ok(())
    }

    async fn forget(&self, mails: &[Uuid]) -> io::Result<()> {
        for id in mails {
            remove(&self.path(*id)).await?;
        }
        Ok(())
    }

    async fn forget_before(&self, then: Timestamp) -> io::Result<()> {
        for path in files(&self.folder).await? {
            if written_at(&path).is_some_and(|written| written < then) {
                remove(&path).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use urr_testkit::fixed;

    use super::*;

    #[tokio::test]
    async fn mails_are_deleted_by_id_and_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let (clock, ids) = fixed();
        let mailer = FileMailer::new(dir.path().join("mail"));
        mailer.forget_before(clock.now()).await.unwrap();
        let send = async || {
            let (id, at) = (ids.next(), clock.now());
            let to = "minji@example.com".to_owned();
            mailer.send(Mail { id, to, subject: String::new(), text: String::new(), at }).await.unwrap();
            id
        };
        let is_kept = |id: Uuid| mailer.path(id).exists();
        let [old, named] = [send().await, send().await];
        clock.advance(Duration::from_mins(1));
        let new = send().await;
        std::fs::write(dir.path().join("mail/note.txt"), "mine").unwrap();
        mailer.forget(&[named, ids.next()]).await.unwrap();
        assert_eq!([old, named, new].map(is_kept), [true, false, true]);
        mailer.forget_before(clock.now().before(Duration::from_secs(61))).await.unwrap();
        assert!(is_kept(old), "not older than that");
        mailer.forget_before(clock.now().before(Duration::from_secs(1))).await.unwrap();
        assert_eq!([old, new].map(is_kept), [false, true]);
        assert!(dir.path().join("mail/note.txt").exists(), "other files are not deleted");
    }

    #[tokio::test]
    async fn a_mail_is_written_to_a_file_and_the_oldest_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let (clock, _) = fixed();
        let mailer = FileMailer::new(dir.path().join("mail"));
        let mail = |number: u128| Mail {
            id: Uuid::from_u128(number),
            to: "minji@example.com".to_owned(),
            subject: "제목".to_owned(),
            text: "본문".to_owned(),
            at: clock.now(),
        };
        let path = |number: u128| dir.path().join(format!("mail/{}.eml", Uuid::from_u128(number)));
        mailer.send(mail(1)).await.unwrap();
        let written = std::fs::read_to_string(path(1)).unwrap();
        let (head, text) = written.split_once("\r\n\r\n").unwrap();
        for line in [
            "From: URR <no-reply@localhost>",
            "To: minji@example.com",
            "Subject: 제목",
            "Date: Mon, 01 Jun 2026 03:00:00 +0000",
            "Content-Type: text/plain; charset=utf-8",
        ] {
            assert!(head.split("\r\n").any(|known| known == line), "{line} is missing in {written}");
        }
        assert_eq!(text, "본문");
        for number in 2..=MAX_FILES as u128 {
            std::fs::write(path(number), "").unwrap();
        }
        mailer.send(mail(1)).await.unwrap();
        assert!(path(1).exists(), "sending again is harmless");
        mailer.send(mail(MAX_FILES as u128 + 1)).await.unwrap();
        assert!(!path(1).exists() && path(2).exists());
    }
}
