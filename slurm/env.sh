# shellcheck shell=bash
# The environment of a job, read by train.sbatch on the batch node. Adapt this file to the machine; it is the only one
# that should need it.

# module load gcc openmpi hdf5                      # where the machine uses modules
: "${DEW_TRAIN:=$PWD/build/cpu-release/apps/dew_train}"   # the program, on a file system that all nodes see

# PMIx's shared-memory store fails now and then in MPI_Init under CPU load; the plain one does not.
export PMIX_MCA_gds=hash
export OMP_WAIT_POLICY=passive
