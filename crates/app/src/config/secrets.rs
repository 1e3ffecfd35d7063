//! Secrets nobody configured: made on first start, kept in the data directory for the owner's eyes alone, and used again
//! ever after. Never in the production profile.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use urr_kernel::Ids;
use urr_settings::Section as _;

use super::{Config, Info, Internal, Kind as _, Profile, Security, SigningSecret, Values};

/// The file in the data directory.
pub(crate) const FILE: &str = "secrets.toml";

/// What is generated. 32 random bytes in hex: 256 bits, and longer than every minimum.
pub(crate) static GENERATED: &[&Info] = &[SECRET, Internal::info("internal.token"), INDEX_KEY];

const SECRET: &Info = Security::info("security.secret");
const INDEX_KEY: &Info = urr_auth::Settings::info("auth.index_key");

/// Those that files of older versions do not have. Nothing depends on them there, so they are made when first needed.
static ADDED_LATER: &[&Info] = &[INDEX_KEY];

/// The secrets kept in a data directory, by setting.
pub(crate) type Secrets = Vec<(&'static Info, String)>;

/// Where the secrets of a data directory are kept.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// Reads the secrets, or makes them if there are none yet. Two processes that start at once end up with the same ones.
pub(crate) fn read_or_create(data_dir: &Path, ids: &Ids) -> io::Result<Secrets> {
    let path = path(data_dir);
    let draft = data_dir.join(format!(".{FILE}.{}", hex(&ids.bytes::<8>())));
    if let Some(secrets) = read(data_dir)? {
        let missing: Vec<&Info> = ADDED_LATER.iter().copied().filter(|info| !has(&secrets, info)).collect();
        if missing.is_empty() {
            return Ok(secrets);
        }
        let before = fs::read_to_string(&path)?;
        write_draft(&draft, &before, &missing, ids)?;
        fs::rename(&draft, &path)?;
        fs::File::open(data_dir)?.sync_all()?;
        return read(data_dir)?.ok_or_else(|| io::Error::other(format!("{} vanished", path.display())));
    }
    let written = write_draft(&draft, HEAD, GENERATED, ids).and_then(|()| {
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

impl Values {
    /// The file of generated secrets.
    pub(crate) fn secrets_path(&self) -> PathBuf {
        path(&Config::read(self).data_dir)
    }

    /// What keys are made of: as it was configured, or as an earlier start has made it. Whether the rest of the configuration fits
    /// together is not asked.
    pub(crate) fn signing_secret(&self) -> io::Result<Option<SigningSecret>> {
        let config = Config::read(self);
        if config.security.secret.is_some() || config.profile == Profile::Production {
            return Ok(config.security.secret);
        }
        let made = read(&config.data_dir)?.unwrap_or_default();
        let made = made.into_iter().find(|(info, _)| info.key == SECRET.key);
        Ok(made.and_then(|(_, text)| SigningSecret::parse(&text).ok()))
    }
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
        let text = match text {
            Some(text) => text,
            None if ADDED_LATER.iter().any(|later| later.key == info.key) => continue,
            None => return Err(broken(format!("{} is missing", info.key))),
        };
        (info.check)(text).map_err(|wrong| broken(format!("{} {wrong}", info.key)))?;
        secrets.push((*info, text.to_owned()));
    }
    Ok(Some(secrets))
}

fn has(secrets: &Secrets, wanted: &Info) -> bool {
    secrets.iter().any(|(info, _)| info.key == wanted.key)
}

/// What stands above the secrets.
const HEAD: &str = "\
# Made on first start. Whoever reads this file can sign in as anybody. Whoever loses it signs everybody out, and no account is
# found any more.
";

fn write_draft(draft: &Path, before: &str, wanted: &[&Info], ids: &Ids) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    file.write_all(before.as_bytes())?;
    for info in wanted {
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
    fn a_file_of_an_older_version_keeps_its_secrets_and_gets_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let ids = Ids::random(Clock::system());
        let old =
            "security.secret = \"0123456789abcdef0123456789abcdef\"\ninternal.token = \"0123456789abcdef\"\n";
        fs::write(path(dir.path()), old).unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap().len(), 2);
        let secrets = read_or_create(dir.path(), &ids).unwrap();
        assert_eq!(texts(&secrets)[..2], ["0123456789abcdef0123456789abcdef", "0123456789abcdef"]);
        assert_eq!(secrets.len(), GENERATED.len());
        assert_eq!(texts(&read_or_create(dir.path(), &ids).unwrap()), texts(&secrets));
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
