//! `template …`: profiles from which sessions are created.

mod capabilities;
mod create;
mod delete;
mod get;
mod libraries;
mod list;
mod modules;
mod settings;
mod startup;
mod update;

use crate::context::Context;
use crate::error::CliError;
use crate::lists::ListArgs;
use clap::Subcommand;
use vm_system_protocol::control::TemplateGet;
use vm_system_protocol::model::TemplateDetail;

/// Arguments of a verb that needs only a template.
#[derive(Debug, clap::Args)]
pub struct Of {
    /// Id, unique beginning of an id, or name
    #[arg(value_name = "TEMPLATE")]
    template: String,
}

/// Verbs of templates.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a template
    Create(create::Args),
    /// Show all templates
    List(ListArgs),
    /// Show one template with its settings
    Get(Of),
    /// Change a template; narrower rights apply to existing sessions too, wider ones only to new sessions
    Update(update::Args),
    /// Delete a template; its sessions continue
    Delete(Of),
    /// Add a host module that sessions may require
    AddModule(modules::ModuleChange),
    /// Remove a host module
    RemoveModule(modules::ModuleChange),
    /// Show a template's host modules
    ListModules(Of),
    /// Show all available host modules
    ListAvailableModules,
    /// Add a file that new sessions run at their start
    AddStartup(startup::AddStartup),
    /// Show a template's startup files in order
    ListStartup(Of),
    /// Remove a startup file
    RemoveStartup(startup::RemoveStartup),
    /// Add a capability, which grants, narrows or withdraws a right of sessions
    AddCapability(capabilities::AddCapability),
    /// Show a template's capabilities
    ListCapabilities(Of),
    /// Remove a capability
    RemoveCapability(capabilities::RemoveCapability),
    /// Add a library for new sessions
    AddLibrary(libraries::LibraryChange),
    /// Remove a library; existing sessions keep it
    RemoveLibrary(libraries::LibraryChange),
    /// Show a template's libraries
    ListLibraries(Of),
    /// Show all available libraries
    ListAvailableLibraries,
}

pub(crate) async fn run(context: &Context, command: Command) -> Result<u8, CliError> {
    match command {
        Command::Create(args) => create::run(context, args).await,
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Update(args) => update::run(context, args).await,
        Command::Delete(args) => delete::run(context, args).await,
        Command::AddModule(args) => modules::add(context, args).await,
        Command::RemoveModule(args) => modules::remove(context, args).await,
        Command::ListModules(args) => modules::list(context, args).await,
        Command::ListAvailableModules => modules::list_available(context).await,
        Command::AddStartup(args) => startup::add(context, args).await,
        Command::ListStartup(args) => startup::list(context, args).await,
        Command::RemoveStartup(args) => startup::remove(context, args).await,
        Command::AddCapability(args) => capabilities::add(context, args).await,
        Command::ListCapabilities(args) => capabilities::list(context, args).await,
        Command::RemoveCapability(args) => capabilities::remove(context, args).await,
        Command::AddLibrary(args) => libraries::add(context, args).await,
        Command::RemoveLibrary(args) => libraries::remove(context, args).await,
        Command::ListLibraries(args) => libraries::list(context, args).await,
        Command::ListAvailableLibraries => super::libs::list::run(context).await,
    }
}

/// One template with its parts.
async fn detail(context: &Context, template: String) -> Result<TemplateDetail, CliError> {
    context.call(TemplateGet { template }).await
}
