//! The connection to the cluster: who is asked, how long an answer may take, and what a refusal means.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kube::{Client, Config};
use tokio::runtime::{Builder, Runtime};

use wirelab_lab::LabError;

/// How long the API server may take for one answer.
const ANSWERING: Duration = Duration::from_secs(30);

/// How long it may take to say that it is there.
const REACHING: Duration = Duration::from_secs(10);

/// How long it may be away.
const RETURNING: Duration = Duration::from_secs(30);

/// How often it is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A cluster, and the thread that talks to it: streams have to be read and answered while wirelab does something else.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    /// Its version, as the API server says it.
    pub(crate) version: String,
    /// Raised where something was lost in a pod that works as far as the cluster knows, which learns of the end of a node late.
    pub(crate) doubt: AtomicBool,
}

impl Cluster {
    /// Connects to the cluster of the kubeconfig, or, in a pod, to that of the pod's service account.
    ///
    /// # Errors
    /// If there is none, or it cannot be reached; the message says what would help.
    pub(crate) fn connect() -> Result<Self, LabError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("kubernetes")
            .build()
            .map_err(|error| LabError(format!("cannot start the thread that talks to the cluster: {error}")))?;
        let mut config = runtime.block_on(Config::infer()).map_err(|error| {
            LabError(format!(
                "there is no cluster: {error}. Name a kubeconfig file in KUBECONFIG, or have one at ~/.kube/config, and try \
                 `kubectl get nodes` with it"
            ))
        })?;
        // A trial may be silent for as long as it likes.
        config.read_timeout = None;
        config.connect_timeout = Some(REACHING);
        let url = config.cluster_url.to_string();
        let client = {
            let _entered = runtime.enter();
            Client::try_from(config).map_err(|error| {
                LabError(format!("cannot use the kubeconfig of {url}: {error}; is its certificate valid?"))
            })?
        };
        let mut cluster = Self { client, runtime, version: String::new(), doubt: AtomicBool::new(false) };
        let attempt = format!("reaching the cluster at {url}");
        let request = cluster.client.apiserver_version();
        cluster.version = cluster.within(REACHING, &attempt, request)?.git_version;
        Ok(cluster)
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// If it is refused, or does not come; `attempt` says what was tried.
    pub(crate) fn ask<T>(
        &self,
        attempt: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LabError> {
        self.within(ANSWERING, attempt, request)
    }

    /// Waits until the API server answers again, so that its restart costs no more than the trial in flight.
    ///
    /// # Errors
    /// If it does not for too long.
    pub(crate) fn await_answer(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + RETURNING;
        loop {
            match self.ask("waiting for the API server", self.client.apiserver_version()) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                // Who could say that it is back is away.
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn within<T>(
        &self,
        patience: Duration,
        attempt: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LabError> {
        let answer = self.runtime.block_on(async { tokio::time::timeout(patience, request).await });
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(LabError(format!("{attempt}: {}", explained(&error)))),
            Err(_) => Err(LabError(format!(
                "{attempt}: the API server did not answer within {patience:?}; is it up, and is it reached from here?"
            ))),
        }
    }
}

/// What went wrong, and what would help.
fn explained(error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else {
        return format!("{}; is the API server up, and is it reached from here?", with_causes(error));
    };
    let remedy = match status.code {
        401 => "; the kubeconfig's credentials are not accepted: renew them",
        403 if status.message.contains("exceeded quota") => "; raise the quota, or use a cluster with room",
        403 => "; `wirelab labs rbac` prints the rights that are needed",
        _ => "",
    };
    format!("{}{remedy}", status.message)
}

/// An error with what lies under it, which is where the reason is.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

/// Whether something is not there, which is no failure where it is to be removed.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the API server no longer remembers what became of something since the version that it was asked of.
pub(crate) fn is_outdated(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}
