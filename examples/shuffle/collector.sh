#!/bin/sh
# The collecting organisation: asks the question, opens what the shufflers have mixed, and publishes the answers.
# usage: ./collector.sh FOLDER PORT
set -eu
exec tacit serve --data "$1" --port "$2"
