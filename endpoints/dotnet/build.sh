#!/bin/sh
# Builds the endpoint with the .NET SDK that `dotnet` on the PATH finds, for the framework of that SDK. No package is fetched:
# the frameworks that come with the SDK are all that it needs.
set -eu

fail() {
    echo "$1" >&2
    exit 1
}

remedy="install one of version 8.0 or later, with ASP.NET Core, and put its \`dotnet\` on the PATH"
# Keeps the SDK from writing to the user's home, and from leaving processes.
export DOTNET_GENERATE_ASPNET_CERTIFICATE=false DOTNET_CLI_HOME="$WIRELAB_WORK" DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1
export MSBUILDDISABLENODEREUSE=1
# Otherwise the SDK demands a library of the languages of the world.
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1

# The newest; a runtime alone has none.
version=$(dotnet --list-sdks | sort -V | tail -n 1 | cut -d ' ' -f 1)
case "$version" in
    "") fail "no .NET SDK: \`dotnet\` is a runtime alone; $remedy" ;;
    3.1.*)
        echo "note: .NET Core 3.1 is out of support since 2022; its figures are not those of .NET today" >&2
        WirelabFramework=netcoreapp3.1
        ;;
    [89].* | [1-9][0-9].*) WirelabFramework=net${version%%.*}.0 ;;
    *) fail "no .NET SDK of version 8.0 or later: the newest is $version; $remedy" ;;
esac
export WirelabFramework

# The compiler leaves its files beside the project, and the endpoint's folder has to stay as it is.
rm -rf "$WIRELAB_WORK/source"
mkdir "$WIRELAB_WORK/source"
cp -r ./* "$WIRELAB_WORK/source"
cd "$WIRELAB_WORK/source"
dotnet publish --nologo -c Release -o "$WIRELAB_INSTALLED" -maxcpucount:2 -nodeReuse:false -p:UseSharedCompilation=false
