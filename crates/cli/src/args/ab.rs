//! Arguments of `wirelab ab`.

use std::path::PathBuf;

use clap::Args;
use wirelab_model::protocol::Protocol;
use wirelab_model::units::{Share, Span};

use super::{FailOn, MixArgs, RequestArgs, ShowArgs};

/// Arguments of `ab`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab ab --base './old --port {port}' --head './new --port {port}' --path /items
                                                two programs, started for each trial
  wirelab ab --base './old {port}' --head './new {port}' --body @order.json --path /orders
  wirelab ab --base http://localhost:8080/ --head http://localhost:8081/
                                                two services that run already
  wirelab ab --base server-main --head server-branch
  wirelab ab --base nginx --head caddy --protocol h3 --set 'payload=64 KiB' --set connections=4
  wirelab ab --base my-main --head my-branch --fail-on 'p99 5 % worse' --max-duration '5 min'
  wirelab ab --base go-grpc@1.84.0 --head go-grpc@1.85.0 --protocol grpc
                                                two versions of a library
  wirelab ab --bisect v1.2.0..HEAD --build 'make server' --start '{tree}/server --port {port}'
                                                the first commit that is slower

The exit status is 3 if the head is shown to be worse than allowed (docs/gate.md).")]
pub struct AbArgs {
    /// The base build: a command line, the URL of a service that runs already, or an endpoint (`wirelab endpoints`
    /// lists them). wirelab starts a command for each trial; `{port}` stands for the port where it must listen, within
    /// `start_timeout` (`--set 'start_timeout=1 min'` for slow ones). A word without a blank and a slash is an endpoint
    #[arg(long, value_name = "COMMAND|URL|ENDPOINT", required_unless_present = "build")]
    pub base: Option<String>,
    /// The head build, of the same kind
    #[arg(long, value_name = "COMMAND|URL|ENDPOINT", required_unless_present = "build")]
    pub head: Option<String>,
    /// Find the first bad build: in a range of git (`GOOD..BAD`, with --build and --start), or among builds between
    /// --base and --head, one for each --bisect in the order of time
    #[arg(long, value_name = "GOOD..BAD|BUILD", conflicts_with_all = ["fail_on", "plan"])]
    pub bisect: Vec<String>,
    /// The shell command that builds a commit, in a working tree of its own
    #[arg(long, value_name = "COMMAND", requires_all = ["bisect", "start"], conflicts_with_all = ["base", "head"])]
    pub build: Option<String>,
    /// The command line that starts the build of a commit; `{tree}` stands for its working tree
    #[arg(long, value_name = "COMMAND", requires = "build")]
    pub start: Option<String>,
    /// The protocol, for example h1, h2 or h3. Default: h2; h1c for an http:// URL, and for a command without
    /// `{certificate}`
    #[arg(long, short)]
    pub protocol: Option<Protocol>,
    /// Send a request for this path to both builds; repeatable. Default: that of the URL, or `/`; endpoints serve a
    /// document of their own
    #[arg(long = "path", value_name = "PATH", conflicts_with_all = ["curl", "targets", "har", "request_file"])]
    pub paths: Vec<String>,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub mix: MixArgs,
    /// Fix a setting of the load (`wirelab studies keys` lists them); repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// The largest difference that does not matter
    #[arg(long, value_name = "SHARE", default_value = "5 %")]
    pub margin: Share,
    /// Fail on this instead of a median or P99 response time that is worse by more than --margin, as in `wirelab run`;
    /// repeatable
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<FailOn>,
    /// Start no new block after this time, apart from the 10 blocks that a verdict needs
    #[arg(long, value_name = "DURATION", default_value = "10 min")]
    pub max_duration: Span,
    /// Use this lab (`wirelab labs` lists them). Default: loopback; internet for URLs
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
    /// Lift the limits for URLs of other hosts: you may send load to both
    #[arg(long)]
    pub i_may_load_these_hosts: bool,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Print the plan and stop
    #[arg(long)]
    pub plan: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}
