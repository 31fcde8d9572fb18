#!/bin/sh
# A shuffling organisation: holds shares of sealed reports, mixes them with the other shufflers, and erases them.
# usage: ./shuffler.sh FOLDER PORT NAME KEY-OF-THE-COLLECTOR
set -eu
exec tacit shuffler serve --data "$1" --port "$2" --name "$3" --collector "$4"
