//! Arguments of `wirelab labs`.

use clap::{Args, Subcommand};

/// Arguments of `labs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab labs                                  list labs, links, observers and metrics
  wirelab labs measure                          measure every link that has a name
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

/// The subcommands of `labs`.
#[derive(Debug, Subcommand)]
pub enum LabsCommand {
    /// Measure round trip, rate, loss and MTU of the links of the lab netns on this machine. The exit status is 1 if a
    /// link is out of tolerance
    #[command(after_help = "Examples:
  wirelab labs measure                          every link that has a name
  wirelab labs measure --set placement=home --set bandwidth='10 Mbit/s,50 Mbit/s'
  wirelab labs measure conditions --times 3     the links of a study, three times each")]
    Measure {
        /// A built-in study or the path of a study file, for its links; default: every link with a name
        study: Option<String>,
        /// Replace the levels of a factor, or fix a setting; repeatable
        #[arg(long = "set", value_name = "KEY=VALUE[,VALUE]")]
        sets: Vec<String>,
        /// Number of measurements of each link
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        times: u32,
    },
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
