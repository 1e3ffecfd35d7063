//! A simulated disk: builds the preload library `shim/powerloss.c` and restores synced data after a
//! kill.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

/// The directory of the image with contents that have no name. It is not part of the disk.
const IMAGES: &str = ".images";

/// A data directory and the image of its durable part.
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    image: PathBuf,
    library: PathBuf,
}

/// Which fsyncs take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncs {
    /// All that the program makes.
    All,
    /// Only those that SQLite makes with `synchronous=NORMAL`: the control, which the tests must
    /// detect.
    AsInNormal,
}

/// A disk fault that affects SQLite's WAL files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sickness {
    /// Writes fail with `ENOSPC`.
    Full,
    /// Syncs fail with `EIO`.
    Broken,
}

impl Sickness {
    fn flag(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Broken => "broken",
        }
    }
}

impl Disk {
    /// An empty disk in `dir`. Builds the library with the C compiler.
    pub fn new(dir: &Path) -> anyhow::Result<Self> {
        let disk =
            Self { root: dir.join("data"), image: dir.join("image"), library: dir.join("powerloss.so") };
        fs::create_dir_all(&disk.root)?;
        fs::create_dir_all(disk.image.join(IMAGES))?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/powerloss.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&disk.library, &source])
            .args(["-ldl", "-lpthread"])
            .output()
            .context("cc is needed to build the power-loss library")?;
        ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Ok(disk)
    }

    /// The directory the program writes to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory with what would survive.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// The environment of a program that writes to this disk.
    pub fn env(&self, syncs: Syncs) -> Vec<(&'static str, PathBuf)> {
        let mut env = vec![
            ("LD_PRELOAD", self.library.clone()),
            ("POWERLOSS_ROOT", self.root.clone()),
            ("POWERLOSS_IMAGE", self.image.clone()),
        ];
        if syncs == Syncs::AsInNormal {
            env.push(("POWERLOSS_NORMAL", "1".into()));
        }
        env
    }

    /// Turns a fault on.
    pub fn fall_sick(&self, how: Sickness) -> io::Result<()> {
        fs::write(self.image.join(IMAGES).join(how.flag()), "")
    }

    /// Turns a fault off.
    pub fn recover(&self, from: Sickness) -> io::Result<()> {
        fs::remove_file(self.image.join(IMAGES).join(from.flag()))
    }

    /// Discards what was not synced. To be called after the program was killed. Returns the number
    /// of bytes left.
    pub fn power_back(&self) -> io::Result<u64> {
        fs::remove_dir_all(&self.root)?;
        fs::remove_dir_all(self.image.join(IMAGES))?;
        let bytes = copy_tree(&self.image, &self.root)?;
        fs::create_dir(self.image.join(IMAGES))?;
        Ok(bytes)
    }
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<u64> {
    fs::create_dir_all(to)?;
    let mut bytes = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        bytes += if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?
        } else {
            fs::copy(entry.path(), &to)?
        };
    }
    Ok(bytes)
}
