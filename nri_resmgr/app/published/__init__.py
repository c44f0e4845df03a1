"""Resources published to containers: a mounted folder with resources.sh and .json."""
