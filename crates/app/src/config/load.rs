//! Reads settings from the file, the environment and the command line; later sources override
//! earlier ones. Each value keeps its source, for error messages.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use urr_settings::ENV_PREFIX;

use super::{Info, Problem, infos, nearest};

/// Environment variables of the test suite.
pub(crate) const ENV_TESTS: &str = "URR_TEST_";

/// The environment variable that names the configuration file, as `--config` does.
pub(crate) const ENV_CONFIG: &str = "URR_CONFIG";

/// Other names of settings, which existing deployments already export.
pub(crate) const ENV_ALIASES: &[(&str, &str)] =
    &[("INTERNAL_API_TOKEN", "internal.token"), ("GOOGLE_CLIENT_ID", "auth.google.client_id")];

/// Suffix of a key that names the file of a secret.
const FILE_SUFFIX: &str = "_file";

/// Maximum size of a configuration or secret file: hundreds of times the usual size.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The configuration file if none is named; it may be missing.
pub(crate) const DEFAULT_FILE: &str = "urr.toml";

/// The input of the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// `--config`.
    pub file: Option<PathBuf>,
    /// Directory of [`DEFAULT_FILE`], and base of relative paths.
    pub working_dir: PathBuf,
    /// All environment variables.
    pub env: Vec<(OsString, OsString)>,
    /// Settings given as flags.
    pub flags: Vec<Flag>,
}

/// One setting given on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    /// The flag, such as `--listen`.
    pub name: String,
    /// The setting's key.
    pub key: String,
    /// The value.
    pub value: String,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It was not set.
    Default,
    /// Generated on first start and stored in the data directory.
    Generated(PathBuf),
    /// The configuration file, at this line.
    File(PathBuf, usize),
    /// An environment variable.
    Env(String),
    /// The command line.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Generated(path) => write!(f, "generated, in {}", path.display()),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Env(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// The text of every setting that was set, and its source.
#[derive(Clone, Default)]
pub(crate) struct Values {
    found: BTreeMap<&'static str, (String, Source)>,
}

impl Values {
    /// Reads every source. Returns all problems at once; an invalid value counts as unset.
    pub(crate) fn load(input: &Input) -> (Self, Vec<Problem>) {
        let mut loader = Loader::default();
        loader.file(input);
        loader.env(input);
        loader.flags(input);
        loader.check();
        (loader.values, loader.problems)
    }

    /// The source of a value.
    pub(crate) fn source(&self, key: &str) -> &Source {
        self.found.get(key).map_or(&Source::Default, |(_, source)| source)
    }

    /// Sets a value generated on first start, unless it is configured.
    pub(crate) fn set_generated(&mut self, info: &'static Info, text: String, path: PathBuf) {
        self.found.entry(info.key).or_insert((text, Source::Generated(path)));
    }
}

impl urr_settings::Source for Values {
    fn text(&self, key: &str) -> Option<&str> {
        self.found.get(key).map(|(text, _)| text.as_str())
    }

    fn origin(&self, key: &str) -> String {
        self.source(key).to_string()
    }
}

impl fmt::Debug for Values {
    /// Redacts secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::effective(self))
    }
}

#[derive(Default)]
struct Loader {
    values: Values,
    problems: Vec<Problem>,
}

impl Loader {
    fn problem(&mut self, source: &Source, what: impl fmt::Display) {
        self.problems.push(Problem(format!("{source}: {what}")));
    }

    fn file(&mut self, input: &Input) {
        let named = input.file.clone().or_else(|| {
            let config = input.env.iter().find(|(name, value)| name == ENV_CONFIG && !value.is_empty());
            config.map(|(_, value)| PathBuf::from(value))
        });
        let path = match named {
            Some(path) => path,
            None if input.working_dir.join(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
            None => return,
        };
        let text = match read(&input.working_dir.join(&path)) {
            Ok(text) => text,
            Err(wrong) => {
                let what = format!("{}: the configuration file cannot be read: {wrong}", path.display());
                return self.problems.push(Problem(what));
            }
        };
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in &errors {
            let line = error.span().map_or(1, |span| line_of(&text, span.start));
            self.problem(&Source::File(path.clone(), line), error.message().replace('\n', " "));
        }
        // After a syntax error further problems would be misleading.
        if errors.is_empty() {
            let entries = flatten("", table.get_ref());
            let mut layer = Layer::default();
            for (key, value, at) in entries {
                let source = Source::File(path.clone(), line_of(&text, at));
                match value {
                    Some(value) => self.accept(&mut layer, &key, value, source),
                    None => self.problem(
                        &source,
                        format!("`{key}` is neither text, a number, true, false nor a list"),
                    ),
                }
            }
            self.finish(layer, &input.working_dir);
        }
    }

    fn env(&mut self, input: &Input) {
        let mut layer = Layer::default();
        for (name, value) in &input.env {
            let Some(name) = name.to_str() else { continue };
            let alias = ENV_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, key)| *key);
            let ours = name.starts_with(ENV_PREFIX) && !name.starts_with(ENV_TESTS) && name != ENV_CONFIG;
            // Docker Compose passes an empty string for an unset variable; treat it as unset.
            if value.is_empty() || !(ours || alias.is_some()) {
                continue;
            }
            let source = Source::Env(name.to_owned());
            let Some(value) = value.to_str() else {
                self.problem(&source, "its value is not UTF-8");
                continue;
            };
            if let Some(key) = alias.map(str::to_owned).or_else(|| key_of_env(name)) {
                self.accept(&mut layer, &key, value.to_owned(), source);
            } else {
                let known: Vec<_> = infos().iter().map(|info| info.env()).collect();
                let meant = did_you_mean(nearest(name, known.iter().map(String::as_str)));
                self.problem(&source, format!("no setting has this name{meant}"));
            }
        }
        self.finish(layer, &input.working_dir);
    }

    fn flags(&mut self, input: &Input) {
        let mut layer = Layer::default();
        for flag in &input.flags {
            let source = Source::Flag(flag.name.clone());
            self.accept(&mut layer, &flag.key, flag.value.clone(), source);
        }
        self.finish(layer, &input.working_dir);
    }

    /// Adds an entry to its layer, or reports an unknown key.
    fn accept(&mut self, layer: &mut Layer, key: &str, value: String, source: Source) {
        if let Some(info) = find(key) {
            if let Some((_, first)) = layer.plain.insert(info.key, (value, source.clone()))
                && first != source
            {
                self.problem(&source, format!("`{key}` was already set by {first}; keep one"));
            }
        } else if let Some(info) = find_file(key) {
            layer.files.insert(info.key, (value, source));
        } else {
            let meant = did_you_mean(nearest_key(key));
            self.problem(&source, format!("`{key}` is no setting{meant}"));
        }
    }

    /// Reads the secret files of a layer, then lets it override the earlier layers.
    fn finish(&mut self, mut layer: Layer, working_dir: &Path) {
        for (key, (path, source)) in std::mem::take(&mut layer.files) {
            if layer.plain.contains_key(key) {
                self.problem(&source, format!("`{key}` is given both as itself and as a file; keep one"));
                continue;
            }
            match read(&working_dir.join(&path)) {
                Ok(text) => {
                    // Editors and `echo` end a file with a line break that is no part of the
                    // secret.
                    let text = text.trim_end_matches(['\n', '\r']).to_owned();
                    layer.plain.insert(key, (text, source));
                }
                Err(wrong) => {
                    self.problem(&source, format!("the file {path} for `{key}` cannot be read: {wrong}"));
                }
            }
        }
        self.values.found.extend(layer.plain);
    }

    /// Removes and reports values that do not parse.
    fn check(&mut self) {
        let mut bad = Vec::new();
        for info in infos() {
            let Some((text, source)) = self.values.found.get(info.key) else { continue };
            if let Err(wrong) = (info.check)(text) {
                bad.push((
                    info.key,
                    source.clone(),
                    format!("`{} = {}` {wrong}", info.key, (info.show)(text)),
                ));
            }
        }
        for (key, source, what) in bad {
            self.values.found.remove(key);
            self.problem(&source, what);
        }
    }
}

/// The entries of one source.
#[derive(Default)]
struct Layer {
    plain: BTreeMap<&'static str, (String, Source)>,
    files: BTreeMap<&'static str, (String, Source)>,
}

/// The setting with this key.
fn find(key: &str) -> Option<&'static Info> {
    infos().iter().copied().find(|info| info.key == key)
}

/// The secret setting whose `*_file` variant this key is.
fn find_file(key: &str) -> Option<&'static Info> {
    key.strip_suffix(FILE_SUFFIX).and_then(find).filter(|info| info.secret)
}

/// The key an environment variable sets.
fn key_of_env(name: &str) -> Option<String> {
    infos().iter().find_map(|info| {
        let env = info.env();
        if name == env {
            Some(info.key.to_owned())
        } else if info.secret && name.strip_prefix(&env) == Some("_FILE") {
            Some(format!("{}_file", info.key))
        } else {
            None
        }
    })
}

/// The key that was probably meant: one whose last part is `key` (its table was omitted), or the
/// most similar key.
fn nearest_key(key: &str) -> Option<&'static str> {
    let last = |key: &'static str| key.rsplit_once('.').map_or(key, |(_, last)| last);
    let bare = infos().iter().map(|info| info.key).find(|known| last(known) == key);
    bare.or_else(|| nearest(key, infos().iter().map(|info| info.key)))
}

fn did_you_mean(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; docs/config.md lists them all".to_owned(),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it is larger than {MAX_FILE_BYTES} bytes"));
    }
    Ok(text)
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

/// Every leaf of a TOML table: dotted key, text (`None` for a type that no setting has), byte
/// offset.
fn flatten(prefix: &str, table: &DeTable<'_>) -> Vec<(String, Option<String>, usize)> {
    let mut leaves = Vec::new();
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{prefix}.{}", name.get_ref())
        };
        match value.get_ref() {
            DeValue::Table(table) => leaves.extend(flatten(&key, table)),
            leaf => leaves.push((key, text_of(leaf), name.span().start)),
        }
    }
    leaves
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        // Then `hold_secs = 1.5` is refused as an invalid number instead of an unknown type.
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| text_of(item.get_ref())).collect();
            items.map(|items| items.join(","))
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}
