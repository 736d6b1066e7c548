//! Arguments of `wirelab labs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `labs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab labs                                  list labs, links, observers and metrics
  wirelab labs measure                          measure every link that has a name
  wirelab labs measure --hosts client=a,server=b
                                                measure the network between two hosts
  wirelab labs rbac | kubectl apply -f -        grant the rights that the lab kubernetes needs
  wirelab labs clean --dry-run                  list the remains of killed runs in the cluster")]
pub struct LabsArgs {
    /// The action; default: list
    #[command(subcommand)]
    pub command: Option<LabsCommand>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Arguments of `labs measure`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab labs measure                          every link that has a name
  wirelab labs measure --set placement=home --set bandwidth='10 Mbit/s,50 Mbit/s'
  wirelab labs measure conditions --times 3     the links of a study, three times each
  wirelab labs measure --hosts client=alice@a.example,server=b.example
                                                round trip, loss, order, MTU and marks between hosts
  wirelab labs measure --hosts hosts.toml --set link_load='200 Mbit/s' --as-placement my-cloud
                                                and the rate; writes my-cloud.toml
  wirelab run quick --lab netns --placements my-cloud.toml --set placement=my-cloud
                                                emulates it on this machine")]
pub struct MeasureArgs {
    /// A built-in study or the path of a study file, for its links; default: every link with a
    /// name, or the first pair of hosts
    pub study: Option<String>,
    /// Replace the levels of a factor, or fix a setting; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE[,VALUE]")]
    pub sets: Vec<String>,
    /// Number of measurements of each link
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub times: u32,
    /// The lab whose links to measure; default: netns, or hosts with --hosts
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
    /// The machines of the lab `hosts`, as for `wirelab run`
    #[arg(long, value_name = "ROLE=DESTINATION,...|FILE")]
    pub hosts: Option<String>,
    /// Write what was found between two hosts to NAME.toml, as a placement that the lab netns emulates; what was not
    /// measured is as on a wire
    #[arg(long, value_name = "NAME")]
    pub as_placement: Option<String>,
    /// Add the placements of this file to those of the study; repeatable
    #[arg(long, value_name = "FILE")]
    pub placements: Vec<PathBuf>,
}

/// The subcommands of `labs`.
#[derive(Debug, Subcommand)]
pub enum LabsCommand {
    /// Measure the links of the lab netns on this machine, or the network between hosts. The exit status is 1 if a link
    /// is out of tolerance, or cannot be measured
    Measure(MeasureArgs),
    /// Remove the remains of killed runs from the cluster of the kubeconfig (namespaces with wirelab's labels whose run
    /// has ended), or from hosts (folders whose agent has ended)
    #[command(after_help = "Examples:
  wirelab labs clean --dry-run
  wirelab labs clean
  wirelab labs clean --hosts client=alice@a.example,server=b.example")]
    Clean {
        /// List the remains, and remove nothing
        #[arg(long)]
        dry_run: bool,
        /// Clean these hosts instead of the cluster; as for `wirelab run`
        #[arg(long, value_name = "ROLE=DESTINATION,...|FILE", conflicts_with = "other_machines")]
        hosts: Option<String>,
        /// Remove the namespaces of other machines as well, even if their runs may still be active
        #[arg(long)]
        other_machines: bool,
    },
    /// Print the minimal rights of the lab kubernetes as a ClusterRole in YAML
    #[command(after_help = "Examples:
  wirelab labs rbac | kubectl apply -f -")]
    Rbac,
}
