//! Runs the binary in a temporary directory, reads its output and sends it HTTP requests.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use urr_kernel::Clock;

/// Timeout of every wait; generous for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A temporary working directory, without the settings of this machine.
pub(crate) struct WorkDir {
    dir: TempDir,
}

impl WorkDir {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_urr"));
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command
    }

    /// Runs a command that ends by itself.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::of(&self.command(args).output().unwrap())
    }

    /// Starts and stops a process. Returns what it printed on stdout.
    pub(crate) fn said_while_serving(&self, args: &[&str]) -> String {
        let mut serving = self.serve(args);
        serving.signal(Signal::TERM);
        assert!(serving.child.wait().unwrap().success());
        serving.out.iter().collect::<Vec<_>>().join("\n")
    }

    /// Serves under a `ulimit` of the shell.
    pub(crate) fn serve_with_ulimit(&self, ulimit: &str) -> Serving {
        let mut command = Command::new("/bin/sh");
        let script = format!("ulimit {ulimit} && exec \"$0\" serve --listen 127.0.0.1:0");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_urr")]);
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        Serving::start(command)
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Serving {
        let all: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].iter().chain(args).copied().collect();
        Serving::start(self.command(&all))
    }
}

/// Output and exit code of a command.
#[derive(Debug)]
pub(crate) struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Stdout of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.out
    }

    /// Stderr of a command that must have failed.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{self:#?}");
        self.err
    }
}

/// A serving process; killed when dropped.
pub(crate) struct Serving {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    pub address: String,
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        let mut serving = Self { child, out, err, address: String::new() };
        let ready = serving.line("is ready at http://");
        serving.address.push_str(ready.split_once("http://").unwrap().1);
        serving
    }

    /// The next line on stdout that contains `words`.
    pub(crate) fn line(&self, words: &str) -> String {
        let clock = Clock::system();
        loop {
            match self.out.recv_timeout(PATIENCE.saturating_sub(clock.ticks())) {
                Ok(line) if line.contains(words) => return line,
                Ok(_) => {}
                Err(why) => panic!(
                    "no line with {words:?}: {why}; stderr: {:#?}",
                    self.err.try_iter().collect::<Vec<_>>()
                ),
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end. Returns the exit code and the unread rest of stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let clock = Clock::system();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.err.iter().collect::<Vec<_>>().join("\n"));
            }
            assert!(clock.ticks() < PATIENCE, "the process did not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops it with SIGTERM.
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        let (code, err) = self.end();
        assert_eq!(code, Some(0), "{err}");
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        ask(&self.address, method, path, headers, body)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The cookies as a browser would send them back.
    pub(crate) fn cookies(&self) -> String {
        let lines = self.head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
        lines.filter_map(|line| line.split(';').next()).collect::<Vec<_>>().join("; ")
    }
}

/// Sends one request on a new connection.
pub(crate) fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n").unwrap();
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n").unwrap();
    }
    write!(stream, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

#[expect(clippy::disallowed_methods, reason = "each pipe needs a reader thread, which ends with the pipe")]
fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
