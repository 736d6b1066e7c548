//! Starts and ends the processes of a trial: servers, sidecars or control plane, and clients; then warm-up, measured
//! window, and the end in reverse order of start.

use wirelab_lab::PreparedLab;
use wirelab_model::plan::{Cell, Trial};
use wirelab_observe::{Observer, Reaped};

use crate::trial::context::{Facts, TrialContext};
use crate::trial::endpoint_handle::TrialAbort;
use crate::trial::processors;

impl TrialContext<'_> {
    /// Starts, synchronises and ends all processes.
    pub(super) fn conduct(
        &self,
        lab: &mut dyn PreparedLab,
        trial: &Trial,
        cell: &Cell,
        observers: &mut [Box<dyn Observer>],
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        // Dropped after the processes below, which use its network.
        let mut arena = lab.open(trial, &cell.job)?;
        let arena = arena.as_mut();
        facts.has_clock = arena.has_clock();
        let inputs = self.trial_inputs(arena, trial, cell, observers)?;
        let mut serving = self.start_servers(arena, &inputs, facts)?;
        self.start_sidecars_or_control_plane(arena, &inputs, &mut serving, facts)?;
        let mut clients = self.start_clients(arena, &inputs, &mut serving, facts)?;
        let names: Vec<_> = observers.iter().map(|observer| observer.about().name).collect();
        facts.remote_observer = arena.remote_observer(&names)?;

        self.prepare(arena, &inputs, observers);
        self.keep_interval(inputs.job)?;
        self.warm_up(&inputs, &mut clients, &mut serving, facts)?;
        self.keep_interval(inputs.job)?;
        self.window(arena, &inputs, &mut clients, &mut serving, observers, facts)?;
        facts.network = arena.end_window(&cell.label())?;
        facts.network.warnings.extend(processors::warnings(arena, cell));
        facts.processors = processors::read(arena, &clients, &serving)?;

        let of_clients = self.end_clients(&mut clients, &mut serving, facts)?;
        let of_servers = self.end_servers(&mut serving, facts)?;
        let reaped = Reaped { server: of_servers, client: of_clients };
        for observer in observers.iter_mut() {
            observer.reaped(&reaped);
        }
        Ok(())
    }
}
