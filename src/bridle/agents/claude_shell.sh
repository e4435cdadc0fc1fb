#!/bin/sh
# Runs one command of Claude Code's own shell without the keys that only the program itself needs.
unset ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS CLAUDE_CODE_OAUTH_TOKEN
unset ANTHROPIC_BEDROCK_API_KEY ANTHROPIC_FOUNDRY_API_KEY AWS_BEARER_TOKEN_BEDROCK
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GOOGLE_APPLICATION_CREDENTIALS
case $1 in
  *"/snapshot-zsh-"*) exec zsh -c "$1" ;;
  *) exec bash -c "$1" ;;
esac
