#!/bin/sh
# What a container of the image runs:
#   executor            an executor, as Spark on Kubernetes asks for it (all else in its environment)
#   driver ARGUMENTS    a driver that the Spark operator or `spark-submit --deploy-mode cluster` made
#   anything else       a command of unskew, such as `run word_count`
set -eu
root=${UNSKEW_ROOT:-/opt/unskew}

case ${1:-} in
  executor)
    shift
    # Spark numbers the options of its JVM from 0, one in a variable each.
    number=0
    while eval "[ -n \"\${SPARK_JAVA_OPT_$number+set}\" ]"; do
      eval "set -- \"\$@\" \"\$SPARK_JAVA_OPT_$number\""
      number=$((number + 1))
    done
    exec "${JAVA_HOME:-$root/jre}/bin/java" "$@" \
      "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" \
      --executor-id "$SPARK_EXECUTOR_ID" \
      --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" \
      --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
      --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  driver)
    shift
    export JAVA_HOME="${JAVA_HOME:-$root/jre}"
    # The JVM is there before Unskew is, so the Kafka connector must be on its class path already.
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.driver.extraClassPath=$root/connector/*" "$@"
    ;;
  *)
    exec "$root/venv/bin/unskew" "$@"
    ;;
esac
