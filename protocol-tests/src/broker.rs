//! A broker as a child process, with a directory of its own that goes when the test ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tempfile::TempDir;

use crate::patience::{SOON, eventually};

/// What a broker is started with, beyond its directory and free ports.
#[derive(Debug, Clone, Default)]
pub struct BrokerOptions {
    /// `node.id`; 1 unless told.
    pub node_id: Option<i32>,
    /// Lines of its properties file, after ours, so they win.
    pub settings: Vec<(String, String)>,
    /// Data directory to use instead of a new one.
    pub data: Option<PathBuf>,
}

impl BrokerOptions {
    /// One more setting.
    pub fn set(mut self, key: &str, value: impl ToString) -> BrokerOptions {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// Another broker's data directory.
    pub fn on(mut self, data: &Path) -> BrokerOptions {
        self.data = Some(data.to_owned());
        self
    }
}

/// A running broker. Dropped, its process is killed.
pub struct Broker {
    options: BrokerOptions,
    home: TempDir,
    process: Option<Process>,
    kafka: String,
    http: String,
}

/// How a broker that was not meant to run ended, and all it said.
#[derive(Debug)]
pub struct Ended {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// Standard output and error, in the order they came.
    pub said: String,
}

impl Broker {
    /// Starts a broker and waits until it says that it is ready.
    ///
    /// # Panics
    /// If it does not, with what it said instead.
    pub fn spawn(options: BrokerOptions) -> Broker {
        let home = TempDir::new().expect("a temporary directory");
        let mut broker = Broker { options, home, process: None, kafka: "127.0.0.1:0".into(), http: "127.0.0.1:0".into() };
        broker.start();
        broker
    }

    /// Starts a broker that should refuse to run, and waits for its end.
    pub fn refused(options: BrokerOptions) -> Ended {
        let home = TempDir::new().expect("a temporary directory");
        let broker = Broker { options, home, process: None, kafka: "127.0.0.1:0".into(), http: "127.0.0.1:0".into() };
        let mut process = Process::start(&broker.write_properties());
        let status = process.wait();
        Ended { status, said: process.said() }
    }

    fn start(&mut self) {
        assert!(self.process.is_none(), "the broker runs already");
        let mut process = Process::start(&self.write_properties());
        let ready = eventually(SOON, "the broker's ready line", || {
            let said = process.said();
            let line =
                said.lines().find(|line| ["ready kafka=", "ready controller="].iter().any(|start| line.contains(start))).map(str::to_owned);
            if let (None, Some(status)) = (&line, process.ended()) {
                panic!("the broker ended ({status}) instead of getting ready:\n{}", process.said());
            }
            line
        });
        let field = |name: &str| ready.split_whitespace().find_map(|word| word.strip_prefix(name)).map(str::to_owned);
        self.kafka = field("kafka=").or(field("controller=")).expect("an address after kafka= or controller=");
        self.http = field("http=").expect("an address after http=");
        self.process = Some(process);
    }

    /// From the second start on with the first one's ports, so that clients find it again.
    fn write_properties(&self) -> PathBuf {
        let path = self.home.path().join("server.properties");
        let mut text = format!(
            "node.id={}\nlisteners=PLAINTEXT://{}\nhttp.listen={}\nlog.dirs={}\n",
            self.options.node_id.unwrap_or(1),
            self.kafka,
            self.http,
            self.data_dir().display()
        );
        self.options.settings.iter().for_each(|(key, value)| text += &format!("{key}={value}\n"));
        std::fs::write(&path, text).expect("a properties file");
        path
    }

    /// `host:port` for clients; of a node that is only a controller, its listener for the quorum.
    pub fn bootstrap(&self) -> &str {
        &self.kafka
    }

    /// Its one log directory.
    pub fn data_dir(&self) -> PathBuf {
        self.options.data.clone().unwrap_or_else(|| self.home.path().join("data"))
    }

    /// Directory of a partition's log.
    pub fn log_dir(&self, topic: &str, partition: i32) -> PathBuf {
        self.data_dir().join(format!("{topic}-{partition}"))
    }

    /// What it wrote to standard output and error since its last start.
    pub fn said(&self) -> String {
        self.process.as_ref().map(Process::said).unwrap_or_default()
    }

    /// Ends it without warning, as a power cut that spares the kernel would.
    pub fn kill9(&mut self) {
        let mut process = self.process.take().expect("a running broker");
        process.signal(libc::SIGKILL);
        assert_eq!(process.wait().signal(), Some(libc::SIGKILL), "{}", process.said());
    }

    /// Asks it to stop and waits for that.
    pub fn terminate(&mut self) -> Ended {
        let mut process = self.process.take().expect("a running broker");
        process.signal(libc::SIGTERM);
        Ended { status: process.wait(), said: process.said() }
    }

    /// Starts it again after `kill9` or `terminate`, on the same directory and ports.
    pub fn restart(&mut self) {
        self.start();
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.options.settings.push((key.to_owned(), value.to_string()));
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let process = self.process.as_ref().expect("a running broker");
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.child.id())).expect("the process's status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident memory");
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
    }

    /// CPU time that all its threads took since its last start, to ten milliseconds.
    pub fn cpu_time(&self) -> Duration {
        let process = self.process.as_ref().expect("a running broker");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.child.id())).expect("the process's times");
        // The name in brackets may hold anything; user and system time are the 12th and 13th field behind it.
        let fields = stat.rsplit(')').next().expect("fields behind the name").split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum();
        // USER_HZ is 100 on every Linux.
        Duration::from_millis(ticks * 10)
    }

    /// Answer of its HTTP side: status and body.
    pub fn http(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.http).expect("its HTTP port");
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, body.to_owned())
    }

    /// The text of a scrape.
    pub fn metrics(&self) -> String {
        let (status, text) = self.http("/metrics");
        assert_eq!(status, 200, "{text}");
        text
    }

    /// Value of one series, by its full name with labels.
    pub fn metric(&self, series: &str) -> Option<f64> {
        self.metrics().lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }
}

/// A broker for a test that only speaks to it: our own, or the one that `BOOTSTRAP` names.
pub enum Running {
    /// Ours.
    Ours(Box<Broker>),
    /// Somebody else's, by its address.
    Theirs(String),
}

impl Running {
    /// A fresh broker, or the one that runs.
    pub fn start() -> Running {
        match std::env::var("BOOTSTRAP") {
            Ok(bootstrap) => Running::Theirs(bootstrap),
            Err(_) => Running::Ours(Box::new(Broker::spawn(BrokerOptions::default()))),
        }
    }

    /// `host:port` for clients.
    pub fn bootstrap(&self) -> &str {
        match self {
            Running::Ours(broker) => broker.bootstrap(),
            Running::Theirs(bootstrap) => bootstrap,
        }
    }
}

/// A child and what it says.
struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
    listeners: Vec<std::thread::JoinHandle<()>>,
}

impl Process {
    fn start(properties: &Path) -> Process {
        let mut command = Command::new(binary());
        command.arg("serve").arg("-c").arg(properties);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot run {}: {error}", binary().display()));
        let said = Arc::new(Mutex::new(String::new()));
        let listeners =
            vec![listen(child.stdout.take().expect("piped"), said.clone()), listen(child.stderr.take().expect("piped"), said.clone())];
        Process { child, said, listeners }
    }

    fn said(&self) -> String {
        self.said.lock().expect("no listener panics").clone()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our child")
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill(2) takes numbers only; the child is not reaped before `wait`, so the id is still its own.
        let sent = unsafe { libc::kill(self.child.id() as i32, signal) };
        assert_eq!(sent, 0, "signal {signal}: {}", std::io::Error::last_os_error());
    }

    fn wait(&mut self) -> ExitStatus {
        let said = self.said.clone();
        let status = eventually(SOON, "the broker's end", || self.ended());
        self.listeners.drain(..).for_each(|listener| listener.join().unwrap_or_else(|_| panic!("{}", said.lock().expect("no panic"))));
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("the broker said:\n{}", self.said());
        }
    }
}

fn listen(pipe: impl Read + Send + 'static, said: Arc<Mutex<String>>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let mut said = said.lock().expect("no listener panics");
            said.push_str(&String::from_utf8_lossy(&line));
            said.push('\n');
        }
    })
}

/// The program under test: `UNDERSTUDY`, or the one of this build, brought up to date once per test process. `cargo test` builds a
/// package's programs only for that package's own integration tests, so ours would meet an old one.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("UNDERSTUDY") {
            return PathBuf::from(path);
        }
        let test = std::env::current_exe().expect("the path of this program");
        let profile_dir = test.parent().and_then(Path::parent).expect("<target>/<profile>/deps/<test>");
        let target_dir = profile_dir.parent().expect("<target>");
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--workspace", "--bin", "understudy", "--target-dir"]).arg(target_dir);
        build.arg("--manifest-path").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"));
        if profile_dir.ends_with("release") {
            build.arg("--release");
        }
        let built = build.status().unwrap_or_else(|error| panic!("cannot run cargo: {error}"));
        assert!(built.success(), "the broker does not build");
        profile_dir.join("understudy")
    })
}
