//! Secrets nobody configured: made on first start, kept in the data directory for the owner's eyes alone, and used again
//! ever after. Never in the production profile.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use urr_kernel::Ids;

use super::settings::{INTERNAL_TOKEN, Info, SECURITY_SECRET};

/// The file in the data directory.
pub(crate) const FILE: &str = "secrets.toml";

/// What is generated. 32 random bytes in hex: 256 bits, and longer than every minimum.
static GENERATED: &[&Info] = &[&SECURITY_SECRET.info, &INTERNAL_TOKEN.info];

/// The secrets kept in a data directory, by setting.
pub(crate) type Secrets = Vec<(&'static Info, String)>;

/// Where the secrets of a data directory are kept.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// Reads the secrets, or makes them if there are none yet. Two processes that start at once end up with the same ones.
pub(crate) fn read_or_create(data_dir: &Path, ids: &Ids) -> io::Result<Secrets> {
    if let Some(secrets) = read(data_dir)? {
        return Ok(secrets);
    }
    let path = path(data_dir);
    let draft = data_dir.join(format!(".{FILE}.{}", hex(&ids.bytes::<8>())));
    let written = write_draft(&draft, ids).and_then(|()| {
        // A link fails if the name is taken, a rename would replace another process's secrets.
        match fs::hard_link(&draft, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => fs::File::open(data_dir)?.sync_all(),
        }
    });
    fs::remove_file(&draft)?;
    written?;
    read(data_dir)?.ok_or_else(|| io::Error::other(format!("{} vanished", path.display())))
}

/// Reads the secrets, if they were made.
pub(crate) fn read(data_dir: &Path) -> io::Result<Option<Secrets>> {
    let text = match fs::read_to_string(path(data_dir)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let broken = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| broken(error.message().to_owned()))?;
    let mut secrets = Vec::with_capacity(GENERATED.len());
    for info in GENERATED {
        let (section, name) = info.key.split_once('.').expect("secrets stand in a section");
        let text = table.get(section).and_then(|section| section.get(name)).and_then(toml::Value::as_str);
        let text = text.ok_or_else(|| broken(format!("{} is missing", info.key)))?;
        (info.check)(text).map_err(|wrong| broken(format!("{} {wrong}", info.key)))?;
        secrets.push((*info, text.to_owned()));
    }
    Ok(Some(secrets))
}

fn write_draft(draft: &Path, ids: &Ids) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    writeln!(
        file,
        "# Made on first start. Whoever reads this file can sign in as anybody; whoever loses it signs everybody out."
    )?;
    for info in GENERATED {
        writeln!(file, "{} = \"{}\"", info.key, hex(&ids.bytes::<32>()))?;
    }
    file.sync_all()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use urr_kernel::Clock;

    use super::*;

    #[test]
    fn secrets_are_made_once_kept_private_and_used_again() {
        let dir = tempfile::tempdir().unwrap();
        let ids = Ids::random(Clock::system());
        assert!(read(dir.path()).unwrap().is_none());
        let first = read_or_create(dir.path(), &ids).unwrap();
        let again = read_or_create(dir.path(), &ids).unwrap();
        assert_eq!(texts(&first), texts(&again));
        assert_ne!(first[0].1, first[1].1);
        let mode = fs::metadata(path(dir.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft stays behind");
    }

    #[test]
    fn a_damaged_file_is_refused_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(path(dir.path()), "security.secret = \"short\"\n").unwrap();
        let wrong = read_or_create(dir.path(), &Ids::random(Clock::system())).unwrap_err();
        assert!(wrong.to_string().contains("security.secret"), "{wrong}");
        assert!(fs::read_to_string(path(dir.path())).unwrap().contains("short"));
    }

    fn texts(secrets: &Secrets) -> Vec<&str> {
        secrets.iter().map(|(_, text)| text.as_str()).collect()
    }
}
