#!/bin/sh
# Another organisation, or one of the network: passes sealed requests on, so that no shuffler sees an address.
# usage: ./relay.sh PORT URL-OF-SHUFFLER-1 URL-OF-SHUFFLER-2 URL-OF-SHUFFLER-3
set -eu
port=$1
shift
for url in "$@"; do
    set -- "$@" --to "$url"
    shift
done
exec tacit relay serve --port "$port" "$@"
