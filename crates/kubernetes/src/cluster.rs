//! The connection to the cluster: requests, time-outs, and remedies for refused requests.

use std::error::Error;
use std::io::ErrorKind;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kube::config::{InferConfigError, KubeconfigError};
use kube::{Client, Config};
use tokio::runtime::{Builder, Runtime};

use wirelab_lab::LabError;

/// Time-out of a request to the API server.
const ANSWERING: Duration = Duration::from_secs(30);

/// Time-out of the first connection.
const REACHING: Duration = Duration::from_secs(10);

/// The longest outage of the API server that a run survives.
const RETURNING: Duration = Duration::from_secs(30);

/// Interval of requests during an outage.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A connection to a cluster, and the thread that serves its streams while wirelab does other work.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    /// The Kubernetes version that the API server reports.
    pub(crate) version: String,
    /// Set when something was lost in a pod that the cluster still reports as running: the cluster notices a lost node
    /// late.
    pub(crate) doubt: AtomicBool,
}

impl Cluster {
    /// Connects to the cluster of the kubeconfig or, in a pod, to that of the pod's service account.
    ///
    /// # Errors
    /// If there is no configuration, or the cluster cannot be reached; the message names the remedy.
    pub(crate) fn connect() -> Result<Self, LabError> {
        let runtime = runtime()?;
        let config = runtime.block_on(Config::infer()).map_err(no_cluster)?;
        Self::reach(runtime, config)
    }

    /// Connects like [`Cluster::connect`]; `None` if no cluster is configured.
    ///
    /// # Errors
    /// If a configuration cannot be used, or its cluster cannot be reached; the message names the remedy.
    pub(crate) fn connect_if_configured() -> Result<Option<Self>, LabError> {
        let runtime = runtime()?;
        match runtime.block_on(Config::infer()) {
            Ok(config) => Self::reach(runtime, config).map(Some),
            Err(error) if is_unconfigured(&error) => Ok(None),
            Err(error) => Err(no_cluster(error)),
        }
    }

    fn reach(runtime: Runtime, mut config: Config) -> Result<Self, LabError> {
        // A trial may send nothing for any length of time.
        config.read_timeout = None;
        config.connect_timeout = Some(REACHING);
        let url = config.cluster_url.to_string();
        let client = {
            let _entered = runtime.enter();
            Client::try_from(config).map_err(|error| {
                LabError::cluster(format!("cannot use the kubeconfig of {url}"))
                    .because(error)
                    .remedy("is its certificate valid?")
            })?
        };
        let mut cluster = Self { client, runtime, version: String::new(), doubt: AtomicBool::new(false) };
        let attempt = format!("reaching the cluster at {url}");
        let request = cluster.client.apiserver_version();
        cluster.version = cluster.within(REACHING, &attempt, request)?.git_version;
        Ok(cluster)
    }

    /// Waits for the answer to a request. `attempt` describes the request in errors.
    ///
    /// # Errors
    /// If the request is refused or times out.
    pub(crate) fn ask<T>(
        &self,
        attempt: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LabError> {
        self.within(ANSWERING, attempt, request)
    }

    /// Waits until the API server answers again, so that its restart costs at most the trial in progress.
    ///
    /// # Errors
    /// If it stays away for too long.
    pub(crate) fn await_answer(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + RETURNING;
        loop {
            match self.ask("waiting for the API server", self.client.apiserver_version()) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                // Polls: a server that is away cannot announce its return.
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn within<T>(
        &self,
        limit: Duration,
        attempt: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LabError> {
        let answer = self.runtime.block_on(async { tokio::time::timeout(limit, request).await });
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(refusal(attempt, &error)),
            Err(_) => Err(LabError::cluster(format!("{attempt}: the API server did not answer within {limit:?}"))
                .remedy("is it up, and is it reached from here?")),
        }
    }
}

fn runtime() -> Result<Runtime, LabError> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().thread_name("kubernetes").build();
    runtime.map_err(|error| LabError::cluster("cannot start the thread that talks to the cluster").because(error))
}

fn no_cluster(error: InferConfigError) -> LabError {
    LabError::cluster("there is no cluster").because(error).remedy(
        "name a kubeconfig file in KUBECONFIG, or have one at ~/.kube/config, and try `kubectl get nodes` with it",
    )
}

/// Whether nothing names a cluster: no kubeconfig at the usual place and none in `KUBECONFIG`, and wirelab does not run
/// in a pod.
fn is_unconfigured(error: &InferConfigError) -> bool {
    let is_named = |variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    if is_named("KUBECONFIG") || is_named("KUBERNETES_SERVICE_HOST") {
        return false;
    }
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(KubeconfigError::FindPath) => true,
        Some(KubeconfigError::ReadConfig(error, _)) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// The error of a request, with the remedy.
fn refusal(attempt: &str, error: &kube::Error) -> LabError {
    let kube::Error::Api(status) = error else {
        let remedy = "is the API server up, and is it reached from here?";
        return LabError::cluster(attempt).because(with_causes(error)).remedy(remedy);
    };
    let refused = LabError::refused(attempt).because(status.message.clone());
    match status.code {
        401 => refused.remedy("the kubeconfig's credentials are not accepted: renew them"),
        // The API has no other sign of a quota than this text.
        403 if status.message.contains("exceeded quota") => {
            refused.remedy("raise the quota, or use a cluster with room")
        }
        403 => refused.remedy("`wirelab labs rbac` prints the rights that are needed"),
        _ => LabError::cluster(attempt).because(status.message.clone()),
    }
}

/// An error with its causes, which contain the reason.
fn with_causes(error: &dyn Error) -> String {
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

/// Whether an object does not exist, which is no failure if it should be removed.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the API server has forgotten the version that a watch should continue from.
pub(crate) fn is_outdated(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}
